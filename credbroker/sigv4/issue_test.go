package sigv4_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/egressd/egressd/credbroker/sigv4"
)

const form = "Content-Type: application/x-www-form-urlencoded"

func gzipped(s string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write([]byte(s))
	w.Close()
	return b.String()
}

// A call that answers with a key is refused however its action is written, and
// one of sts and iam that cannot be read is too.
func TestIssue(t *testing.T) {
	const get, post = "GET", "POST"
	tests := []struct {
		name, service, method, target, body string
		fields                              []string
		refused                             bool
	}{
		{"who am I", "sts", get, "/?Action=GetCallerIdentity&Version=2011-06-15", "", nil, false},
		{"who am I, in a form", "sts", post, "/", "Action=GetCallerIdentity&Version=2011-06-15", []string{form + "; charset=utf-8"}, false},
		{"whose key", "sts", post, "/", "Action=GetAccessKeyInfo&AccessKeyId=AKIA", []string{form}, false},
		{"the root", "sts", get, "/", "", nil, false},
		{"the root of iam", "iam", get, "/", "", nil, false},
		{"a list", "iam", post, "/", "Action=ListAccessKeys&Version=2010-05-08", []string{form}, false},
		{"a simulation", "iam", post, "/", "Action=SimulatePrincipalPolicy&ActionNames.member.1=sts%3AGetSessionToken", []string{form}, false},
		{"in JSON, said in a header", "sts", post, "/", `{}`, []string{"Content-Type: application/x-amz-json-1.0", "X-Amz-Target: AWSSecurityTokenServiceV20110615.GetCallerIdentity"}, false},
		{"in CBOR, said in the path", "sts", post, "/service/AWSSecurityTokenServiceV20110615/operation/GetCallerIdentity", "\xa0", []string{"Content-Type: application/cbor"}, false},
		{"another service's", "lambda", post, "/", "Action=GetSessionToken", []string{form}, false},

		{"GetSessionToken", "sts", get, "/?Action=GetSessionToken", "", nil, true},
		{"GetFederationToken", "sts", post, "/", "Action=GetFederationToken", []string{form}, true},
		{"AssumeRole", "sts", post, "/", "Action=AssumeRole", []string{form}, true},
		{"AssumeRoleWithWebIdentity", "sts", post, "/", "Action=AssumeRoleWithWebIdentity", []string{form}, true},
		{"AssumeRoot", "sts", post, "/", "Action=AssumeRoot", []string{form}, true},
		{"GetWebIdentityToken", "sts", post, "/", "Action=GetWebIdentityToken", []string{form}, true},
		{"one that is not known", "sts", post, "/", "Action=GetSomethingNew", []string{form}, true},
		{"CreateAccessKey", "iam", post, "/", "Action=CreateAccessKey", []string{form}, true},
		{"CreateServiceSpecificCredential", "iam", get, "/?Action=CreateServiceSpecificCredential", "", nil, true},
		{"ResetServiceSpecificCredential", "iam", get, "/?Action=ResetServiceSpecificCredential", "", nil, true},
		{"CreateLoginProfile", "iam", get, "/?Action=CreateLoginProfile", "", nil, true},

		{"by PUT", "sts", "PUT", "/?Action=GetSessionToken", "", nil, true},
		{"another case", "iam", get, "/?action=createaccesskey", "", nil, true},
		{"the name escaped", "iam", get, "/?%41ction=CreateAccessKey", "", nil, true},
		{"the value escaped", "iam", get, "/?Action=Create%41ccessKey", "", nil, true},
		{"escaped twice", "iam", get, "/?%2541ction=CreateAccessKey", "", nil, true},
		{"its value escaped twice", "iam", get, "/?Action=Create%2541ccessKey", "", nil, true},
		{"with a space", "iam", get, "/?Action=+CreateAccessKey", "", nil, true},
		{"with NUL", "iam", get, "/?Action=CreateAccessKey%00", "", nil, true},
		{"with a long s", "iam", get, "/?Action=CreateAcce%C5%BFsKey", "", nil, true},
		{"the second of two", "sts", get, "/?Action=GetCallerIdentity&Action=GetSessionToken", "", nil, true},
		{"the first of two", "sts", get, "/?Action=GetSessionToken&Action=GetCallerIdentity", "", nil, true},
		{"in the form, another in the query", "sts", post, "/?Action=GetCallerIdentity", "Action=GetSessionToken", []string{form}, true},
		{"in the query, another in the form", "sts", post, "/?Action=GetSessionToken", "Action=GetCallerIdentity", []string{form}, true},
		{"behind a semicolon", "sts", get, "/?Action=GetCallerIdentity;Action=GetSessionToken", "", nil, true},
		{"behind a mark of byte order", "sts", post, "/?Action=GetCallerIdentity", "\xef\xbb\xbfAction=GetSessionToken", []string{form}, true},
		{"as an element", "sts", post, "/?Action=GetCallerIdentity", "Action[]=GetSessionToken", []string{form}, true},
		{"in UTF-16", "sts", post, "/?Action=GetCallerIdentity", "A\x00c\x00t\x00i\x00o\x00n\x00=\x00G\x00", []string{form}, true},
		{"in a charset", "sts", post, "/?Action=GetCallerIdentity", "+AEE-ction=GetSessionToken", []string{form + "; charset=utf-7"}, true},
		{"in two content types", "sts", post, "/?Action=GetCallerIdentity", "Action=GetCallerIdentity", []string{form, "Content-Type: text/plain"}, true},
		{"without a type", "sts", post, "/", "Action=GetSessionToken", nil, true},
		{"as text", "sts", post, "/", "Action=GetCallerIdentity", []string{"Content-Type: text/plain"}, true},
		{"in parts", "sts", post, "/?Action=GetCallerIdentity", "--x\r\nContent-Disposition: form-data; name=Action\r\n\r\nGetSessionToken\r\n--x--", []string{"Content-Type: multipart/form-data; boundary=x"}, true},
		{"compressed", "sts", post, "/?Action=GetCallerIdentity", gzipped("Action=GetSessionToken"), []string{form, "Content-Encoding: gzip"}, true},
		{"in chunks", "sts", post, "/?Action=GetCallerIdentity", "16\r\nAction=GetSessionToken\r\n0\r\n\r\n", []string{form, "Content-Encoding: aws-chunked", "X-Amz-Content-Sha256: STREAMING-UNSIGNED-PAYLOAD-TRAILER"}, true},
		{"in signed chunks", "sts", post, "/?Action=GetCallerIdentity", "0\r\n\r\n", []string{form, "X-Amz-Content-Sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD"}, true},
		{"a body of nothing known", "sts", post, "/", "hello", []string{form}, true},
		{"in JSON, as a form", "sts", post, "/?Action=GetCallerIdentity", "Action=GetSessionToken", []string{"Content-Type: application/json"}, true},
		{"in JSON, said nowhere", "sts", post, "/", `{"Action":"GetSessionToken"}`, []string{"Content-Type: application/json"}, true},
		{"in XML", "sts", post, "/?Action=GetCallerIdentity", `<GetSessionToken/>`, []string{"Content-Type: text/xml"}, true},
		{"in a header", "sts", post, "/", "{}", []string{"Content-Type: application/x-amz-json-1.1", "X-Amz-Target: AWSSecurityTokenServiceV20110615.GetSessionToken"}, true},
		{"in a header, another in the query", "sts", post, "/?Action=GetCallerIdentity", "{}", []string{"Content-Type: application/x-amz-json-1.1", "X-Amz-Target: X.GetSessionToken"}, true},
		{"in two headers", "sts", post, "/", "{}", []string{"Content-Type: application/x-amz-json-1.1", "X-Amz-Target: X.GetCallerIdentity", "X-Amz-Target: X.GetSessionToken"}, true},
		{"in a list of them", "iam", post, "/", "{}", []string{"Content-Type: application/x-amz-json-1.1", "X-Amz-Target: X.CreateAccessKey, X.GetUser"}, true},
		{"in the path", "iam", post, "/service/AWSIdentityManagementV20100508/operation/CreateAccessKey", "\xa0", []string{"Content-Type: application/cbor"}, true},
		{"in the path, escaped", "iam", post, "/service/X/operation/Create%41ccessKey", "\xa0", []string{"Content-Type: application/cbor"}, true},
		{"in another path", "iam", post, "/CreateAccessKey", "Action=GetUser", []string{form}, true},
		{"behind slashes", "iam", post, "//service/X/operation/CreateAccessKey", "Action=GetUser", []string{form}, true},
		{"a service in capitals", "STS", get, "/?Action=GetSessionToken", "", nil, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, issue := range []bool{false, true} {
				fields := append([]string{"X-Amz-Date: 20261130T120000Z", "Authorization: " + authorization(placeID, "20261130/us-east-1/"+tt.service, "host;x-amz-date", zeros)}, tt.fields...)
				r := request(t, tt.method, "https://x.amazonaws.com"+tt.target, tt.body, fields...)
				q, err := sigv4.Recognise(r)
				if err != nil {
					t.Fatal(err)
				}
				_, err = q.Sign(r, sigv4.Options{Key: key(keyID, keySecret, ""), Issue: issue})
				if want := tt.refused && !issue; (err != nil) != want {
					t.Errorf("issue %v: error %v, want one: %v", issue, err, want)
				}
				if err != nil {
					wantRefusal(t, err, "credential_leak", http.StatusForbidden, "key")
				}
			}
		})
	}
}

// A presigned call is judged like any other.
func TestIssuePresigned(t *testing.T) {
	for action, refused := range map[string]bool{"GetCallerIdentity": false, "GetSessionToken": true} {
		r := request(t, "GET", "https://sts.test/?Action="+action+"&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential="+placeID+
			"%2F20261130%2Fus-east-1%2Fsts%2Faws4_request&X-Amz-Date=20261130T120000Z&X-Amz-Expires=60&X-Amz-SignedHeaders=host&X-Amz-Signature="+zeros, "")
		q, err := sigv4.Recognise(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = q.Sign(r, sigv4.Options{Key: key(keyID, keySecret, "")}); (err != nil) != refused {
			t.Errorf("%s: %v", action, err)
		}
	}
}

// wantRefusal looks at an error as the proxy reads it.
func wantRefusal(t *testing.T, err error, reason string, status int, words ...string) {
	t.Helper()
	var r interface {
		Reason() string
		Detail() string
		Status() int
	}
	if !errors.As(err, &r) || r.Reason() != reason || r.Status() != status {
		t.Errorf("error %v, want %s and %d", err, reason, status)
		return
	}
	for _, word := range words {
		if !strings.Contains(r.Detail(), word) {
			t.Errorf("%q says nothing of %s", r.Detail(), word)
		}
	}
}

// What is signed for another service is judged by the host it goes to.
func TestIssueByHost(t *testing.T) {
	for host, refused := range map[string]bool{"sts.amazonaws.com": true, "sts.eu-central-1.amazonaws.com:443": true, "STS-fips.us-east-1.amazonaws.com": true,
		"sts.s3.eu-central-1.amazonaws.com": false, "lambda.eu-central-1.amazonaws.com": false} {
		r := request(t, "GET", "https://"+host+"/?Action=GetSessionToken", "", "X-Amz-Date: 20261130T120000Z",
			"Authorization: "+authorization(placeID, "20261130/us-east-1/s3", "host;x-amz-date", zeros))
		q, err := sigv4.Recognise(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = q.Sign(r, sigv4.Options{Key: key(keyID, keySecret, "")}); (err != nil) != refused {
			t.Errorf("%s: %v", host, err)
		}
	}
}
