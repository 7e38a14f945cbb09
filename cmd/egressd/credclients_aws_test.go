package main

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/egressd/egressd/internal/proxytest"
)

// awsProgram copies a large file up in parts and down in ranges, several at
// once, presigns, and uploads in each way that a body can be signed.
const awsProgram = `set -e; exec 2>&1; cd /tmp; alias aws=/usr/bin/aws
export AWS_CONFIG_FILE=/tmp/cfg AWS_DEFAULT_REGION=eu-west-1 AWS_MAX_ATTEMPTS=1
printf '[default]\ns3 =\n  addressing_style = path\n  max_concurrent_requests = 8\n  multipart_chunksize = 5MB\n' >cfg; (cat cfg; printf '  payload_signing_enabled = true\n') >signed
head -c 24000000 /dev/urandom >up
aws s3 cp --no-progress up 's3://b/dir/a large+file.bin'
aws s3 cp --no-progress --recursive s3://b/dir/ down; cmp up 'down/a large+file.bin'; echo $?
aws s3 cp --no-progress 's3://b/dir/a large+file.bin' - | cmp - up; echo $?; aws s3 cp --quiet 's3://b/dir/a large+file.bin' single; cmp single up; echo $?
aws s3 ls s3://b/dir/ | cut -c20- | tr -s ' '
url=$(aws s3 presign --expires-in 36000 's3://b/dir/a large+file.bin'); curl -sS "$url" | cmp - up; echo $?
head -c 300000 up >some
aws s3api put-object --bucket b --key sums --body some --checksum-algorithm SHA256 >/dev/null
AWS_CONFIG_FILE=/tmp/signed aws s3 cp --quiet some s3://b/signed; aws s3 cp --quiet - s3://b/piped <some
$OLDPWD/client s3 https://s3.eu-west-1.amazonaws.com/b/streamed some
for k in sums signed piped streamed; do aws s3api get-object --bucket b --key $k got >/dev/null; cmp got some; echo $?; done
aws s3api get-object --bucket b --key sums --range bytes=5-9 part >/dev/null; wc -c <part
aws sts get-caller-identity --query Arn --output text
aws sts get-session-token 2>&1 | grep -o 403 || :
`

// awsSession is a little of it.
const awsSession = `set -e; exec 2>&1; cd /tmp; alias aws=/usr/bin/aws
export AWS_CONFIG_FILE=/tmp/cfg AWS_DEFAULT_REGION=eu-west-1 AWS_MAX_ATTEMPTS=1
printf '[default]\ns3 =\n  addressing_style = path\n' >cfg; head -c 300000 /dev/urandom >some
aws s3 cp --quiet some s3://b/some; curl -sS "$(aws s3 presign s3://b/some)" | cmp - some; echo $?
$OLDPWD/client s3 https://s3.eu-west-1.amazonaws.com/b/streamed some
`

// The command line of AWS against a service that verifies every signature: the
// key is inside as placeholders only, with and without a session token.
func TestCredClientsAWS(t *testing.T) {
	credClients(t, func(t *testing.T, h *credHost) {
		const id, key, session = "AKIAIOSFODNN7MADEUP1", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYMadeUpKey1", "FwoGZXIvYXdzEJr7Qm4x9Zr2Lp8/Kd03nWq81xYtZk31vT0pW5aa9Kd2x7Qm4=="
		if _, err := os.Stat("/usr/bin/aws"); err != nil {
			t.Fatal("aws is not there: .ci/deps test installs it")
		}
		c := credClient{rules: []any{"* *.amazonaws.com/**"}, env: map[string]string{"REAL": key}, secrets: []string{key, session, id},
			files: map[string]string{"~/proj/client": h.program}, exec: []string{"~/proj/client"},
			hosts: []string{"s3.eu-west-1.amazonaws.com", "sts.amazonaws.com", "sts.eu-west-1.amazonaws.com"}}
		const whole = "upload: ./up to s3://b/dir/a large+file.bin\ndownload: s3://b/dir/a large+file.bin to down/a large+file.bin\n0\n0\n0\n 24000000 a large+file.bin\n0\n200 OK HTTP/2.0 \n0\n0\n0\n0\n5\n" +
			"arn:aws:iam::000000000000:user/fake\n403\n"
		for i, x := range []struct {
			name, token string
			run, want   string
			entry       map[string]any
			ways        []string
		}{
			{"key", "", awsProgram, whole, map[string]any{"access_key_id": id, "source": map[string]any{"env": "REAL"}, "own": "replace"},
				[]string{"header STREAMING-AWS4-HMAC-SHA256", "header STREAMING-UNSIGNED", "header UNSIGNED", "header hash", "header range", "presigned UNSIGNED"}},
			{"session", session, awsSession, "0\n200 OK HTTP/2.0 \n", map[string]any{"source": map[string]any{"command": []string{"echo",
				`{"Version": 1, "AccessKeyId": "` + id + `", "SecretAccessKey": "` + key + `", "SessionToken": "` + session + `", "Expiration": "2999-01-01T00:00:00Z"}`}}},
				[]string{"header STREAMING-AWS4-HMAC-SHA256", "header UNSIGNED", "presigned UNSIGNED"}},
		} {
			s3 := &proxytest.S3{KeyID: id, Secret: key, Token: x.token}
			for _, host := range c.hosts {
				h.services[host] = s3
			}
			maps.Copy(x.entry, map[string]any{"id": "aws", "type": "aws_sigv4", "target": "*.amazonaws.com"})
			c.name, c.entries, c.user, c.run, c.want = x.name, []map[string]any{x.entry}, clientUsers[i], x.run, x.want
			h.try(t, c)
			var ways []string
			for _, r := range s3.Seen() {
				if r.Fault != "" {
					t.Errorf("%s: %+v", x.name, r)
				}
				if r.Expires > 900 {
					t.Errorf("%s: a presigned request of %d seconds", x.name, r.Expires)
				}
				way, _, _ := strings.Cut(r.Payload, "-PAYLOAD")
				if r.Range != "" {
					way = "range"
				} else if len(way) == 64 {
					way = "hash"
				}
				ways = append(ways, r.How+" "+way)
			}
			slices.Sort(ways)
			if ways = slices.Compact(ways); !slices.Equal(ways, x.ways) {
				t.Errorf("%s: requests were signed by %q, not %q", x.name, ways, x.ways)
			}
		}
	})
}
