package sigv4_test

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/egressd/egressd/credbroker/sigv4"
)

func ExampleParseProcess() {
	key, expiry, err := sigv4.ParseProcess([]byte(`{"Version":1,"AccessKeyId":"AKIAEXAMPLE","SecretAccessKey":"s","SessionToken":"t","Expiration":"2026-12-01T00:00:00Z"}`))
	fmt.Println(key.ID, key.Secret, expiry.Year(), err)
	// Output: AKIAEXAMPLE [redacted] 2026 <nil>
}

func ExampleRecognise() {
	r, err := http.NewRequest("GET", "https://bucket.s3.us-east-1.amazonaws.com/key", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	r.Header.Set("X-Amz-Date", "20261130T000000Z")
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=AKIAEXAMPLE/20261130/us-east-1/s3/aws4_request, SignedHeaders=host;x-amz-date, Signature="+strings.Repeat("0", 64))
	q, err := sigv4.Recognise(r)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(q.KeyID, q.Region, q.Service)
	// Output: AKIAEXAMPLE us-east-1 s3
}
