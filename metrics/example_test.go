package metrics_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"

	"github.com/egressd/egressd/audit"
	"github.com/egressd/egressd/metrics"
)

func ExampleNew() {
	counts := metrics.New("1.0")
	counts.Count(&audit.Record{Kind: audit.KindLeak, Credential: "github"}) // as audit.Config.Count
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	server := metrics.Serve(l, counts)
	defer server.Close()
	resp, err := http.Get("http://" + l.Addr().String() + "/metrics")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	fmt.Println(regexp.MustCompile(`(?m)^egressd_credential_leaks_total.*`).FindString(string(page)), err)
	// Output: egressd_credential_leaks_total{credential="github"} 1 <nil>
}

func ExampleServe() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	server := metrics.Serve(l, metrics.New("1.0"))
	resp, err := http.Get("http://" + l.Addr().String() + "/other")
	if err != nil {
		fmt.Println(err)
		return
	}
	resp.Body.Close()
	fmt.Println(resp.StatusCode, server.Close())
	// Output: 404 <nil>
}
