package scan_test

import (
	"fmt"

	"github.com/egressd/egressd/credbroker/scan"
)

func ExampleNew() {
	set := scan.New([]scan.Secret{{Value: []byte("hunter2-hunter2"), Replacement: "[redacted]", Entry: "db"}})
	out, entries := set.Text([]byte(`{"raw":"hunter2-hunter2","base64":"aHVudGVyMi1odW50ZXIy"}`))
	fmt.Println(string(out), entries)
	// Output: {"raw":"[redacted]","base64":"[redacted]"} [db]
}
