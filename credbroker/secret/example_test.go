package secret_test

import (
	"fmt"

	"github.com/egressd/egressd/credbroker/secret"
)

func ExampleNew() {
	v := secret.New([]byte("hunter2-hunter2"))
	fmt.Printf("%v %+v %q\n", v, v, v)
	fmt.Println(v.Len(), string(v.Reveal()) == "hunter2-hunter2")
	// Output:
	// [redacted] [redacted] [redacted]
	// 15 true
}
