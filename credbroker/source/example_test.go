package source_test

import (
	"context"
	"fmt"
	"time"

	"github.com/egressd/egressd/credbroker/secret"
	"github.com/egressd/egressd/credbroker/source"
)

func ExampleNewKeeper() {
	calls := 0
	fetch := func(context.Context) (secret.Value, time.Time, error) {
		calls++
		return secret.New(fmt.Appendf(nil, "token %d", calls)), time.Time{}, nil
	}
	k := source.NewKeeper(context.Background(), fetch, 0, nil)
	defer k.Close()
	for range 3 {
		v, generation, err := k.Get(context.Background())
		fmt.Println(string(v.Reveal()), generation, err)
	}
	// Output:
	// token 1 1 <nil>
	// token 1 1 <nil>
	// token 1 1 <nil>
}
