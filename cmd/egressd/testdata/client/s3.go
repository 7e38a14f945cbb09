package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	signer "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// streamed uploads a file to S3 with a signature for each chunk of 64 KiB, as
// the API's reference has it ("Signature Calculations: Transferring Payload in
// Multiple Chunks"). The key is that of the environment.
func streamed(ctx context.Context, url, file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	key := aws.Credentials{AccessKeyID: os.Getenv("AWS_ACCESS_KEY_ID"), SecretAccessKey: os.Getenv("AWS_SECRET_ACCESS_KEY"), SessionToken: os.Getenv("AWS_SESSION_TOKEN")}
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, url, nil)
	if err != nil {
		return err
	}
	const sum = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
	req.Header.Set("Content-Encoding", "aws-chunked")
	req.Header.Set("X-Amz-Content-Sha256", sum)
	req.Header.Set("X-Amz-Decoded-Content-Length", strconv.Itoa(len(data)))
	now := time.Now().UTC()
	bySDK := signer.NewSigner(func(o *signer.SignerOptions) { o.DisableURIPathEscaping = true })
	if err := bySDK.SignHTTP(ctx, key, req, sum, "s3", "eu-west-1", now); err != nil {
		return err
	}
	_, text, _ := strings.Cut(req.Header.Get("Authorization"), "Signature=")
	seed, err := hex.DecodeString(text)
	if err != nil {
		return err
	}
	chunks := signer.NewStreamSigner(key, "s3", "eu-west-1", seed)
	var body bytes.Buffer
	for chunk := range slices.Values(append(slices.Collect(slices.Chunk(data, 64<<10)), nil)) {
		signature, err := chunks.GetSignature(ctx, nil, chunk, now)
		if err != nil {
			return err
		}
		fmt.Fprintf(&body, "%x;chunk-signature=%x\r\n%s\r\n", len(chunk), signature, chunk)
	}
	return send(req, &body)
}
