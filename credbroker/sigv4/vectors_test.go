package sigv4_test

import (
	"strings"
	"testing"

	"github.com/egressd/egressd/credbroker/sigv4"
)

// Published examples: of the S3 reference ("Signature calculations for the
// Authorization header") and
// of AWS's test suite for Signature Version 4.
func TestVectors(t *testing.T) {
	const (
		s3Host    = "https://examplebucket.s3.amazonaws.com"
		s3Scope   = "20130524/us-east-1/s3"
		s3Date    = "X-Amz-Date: 20130524T000000Z"
		empty     = "x-amz-content-sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
		suite     = "https://example.amazonaws.com"
		suiteDate = "X-Amz-Date: 20150830T123600Z"
		scope     = "20150830/us-east-1/service"
		vanilla   = "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"
	)
	tests := []struct {
		name, method, url, body, scope, signed, want string
		fields                                       []string
	}{
		{"s3 get with a range", "GET", s3Host + "/test.txt", "", s3Scope, "host;range;x-amz-content-sha256;x-amz-date", "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
			[]string{s3Date, empty, "Range: bytes=0-9"}},
		{"s3 put", "PUT", s3Host + "/test%24file.text", "Welcome to Amazon S3.", s3Scope, "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class", "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
			[]string{s3Date, "Date: Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class: REDUCED_REDUNDANCY", "x-amz-content-sha256: 44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072"}},
		{"s3 put, the letter as such", "PUT", s3Host + "/test$file.text", "Welcome to Amazon S3.", s3Scope, "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class", "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
			[]string{s3Date, "Date: Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class: REDUCED_REDUNDANCY", "x-amz-content-sha256: 44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072"}},
		{"s3 lifecycle", "GET", s3Host + "/?lifecycle", "", s3Scope, "host;x-amz-content-sha256;x-amz-date", "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543", []string{s3Date, empty}},
		{"s3 list", "GET", s3Host + "/?max-keys=2&prefix=J", "", s3Scope, "host;x-amz-content-sha256;x-amz-date", "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7", []string{s3Date, empty}},

		{"get-vanilla", "GET", suite + "/", "", scope, "host;x-amz-date", vanilla, []string{suiteDate}},
		{"get-relative", "GET", suite + "/example/..", "", scope, "host;x-amz-date", vanilla, []string{suiteDate}},
		{"get-relative-relative", "GET", suite + "/example1/example2/../..", "", scope, "host;x-amz-date", vanilla, []string{suiteDate}},
		{"get-slash", "GET", suite + "//", "", scope, "host;x-amz-date", vanilla, []string{suiteDate}},
		{"get-slash-dot-slash", "GET", suite + "/./", "", scope, "host;x-amz-date", vanilla, []string{suiteDate}},
		{"get-slash-pointless-dot", "GET", suite + "/./example", "", scope, "host;x-amz-date", "ef75d96142cf21edca26f06005da7988e4f8dc83a165a80865db7089db637ec5", []string{suiteDate}},
		{"get-slashes", "GET", suite + "//example//", "", scope, "host;x-amz-date", "9a624bd73a37c9a373b5312afbebe7a714a789de108f0bdfe846570885f57e84", []string{suiteDate}},
		{"get-space", "GET", suite + " /example space/", "", scope, "host;x-amz-date", "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741", []string{suiteDate}},
		{"get-utf8", "GET", suite + " /ሴ", "", scope, "host;x-amz-date", "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85", []string{suiteDate}},
		{"get-vanilla-query-order-key-case", "GET", suite + "/?Param2=value2&Param1=value1", "", scope, "host;x-amz-date", "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500", []string{suiteDate}},
		{"get-vanilla-empty-query-key", "GET", suite + "/?Param1=value1", "", scope, "host;x-amz-date", "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb", []string{suiteDate}},
		{"get-header-key-duplicate", "GET", suite + "/", "", scope, "host;my-header1;x-amz-date", "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea",
			[]string{suiteDate, "My-Header1: value2", "My-Header1: value2", "My-Header1: value1"}},
		{"get-header-value-order", "GET", suite + "/", "", scope, "host;my-header1;x-amz-date", "08c7e5a9acfcfeb3ab6b2185e75ce8b1deb5e634ec47601a50643f830c755c01",
			[]string{suiteDate, "My-Header1: value4", "My-Header1: value1", "My-Header1: value3", "My-Header1: value2"}},
		{"get-header-value-trim", "GET", suite + "/", "", scope, "host;my-header1;my-header2;x-amz-date", "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736",
			[]string{suiteDate, "My-Header1:  value1", `My-Header2:  "a   b   c"`}},
		{"post-vanilla", "POST", suite + "/", "", scope, "host;x-amz-date", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b", []string{suiteDate}},
		{"post-x-www-form-urlencoded", "POST", suite + "/", "Param1=value1", scope, "content-type;host;x-amz-date", "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
			[]string{suiteDate, "Content-Type: application/x-www-form-urlencoded"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			k := key("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "")
			if tt.scope == s3Scope {
				k = key("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "")
			}
			url, raw, _ := strings.Cut(tt.url, " ") // a path that net/url would escape
			r := request(t, tt.method, url, tt.body, append(tt.fields, "Authorization: "+authorization(placeID, tt.scope, tt.signed, zeros))...)
			r.URL.Opaque = raw
			if got := sign(t, r, sigv4.Options{Key: k}); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}
