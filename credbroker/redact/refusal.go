package redact

import "net/http"

// refusal is an answer that cannot be scanned and so is not passed on. Its text
// is ours: nothing that the origin said is in it.
type refusal string

// What is refused, each with what it says to the client.
const (
	errSlice      refusal = "The origin answered with a slice that was not asked for."
	errCoding     refusal = "The origin answered in a content coding that cannot be scanned."
	errGzip       refusal = "The origin's answer is not the gzip that it says it is."
	errStrict     refusal = "The policy refuses answers of this type from hosts with a credential."
	errWebText    refusal = "Answers in application/grpc-web-text cannot be scanned."
	errCompressed refusal = "The origin sent a compressed message, which cannot be scanned."
	errMessage    refusal = "The origin sent a message whose prefix cannot be read."
	errSwitch     refusal = "The origin switched to a protocol that cannot be scanned."
	errExtension  refusal = "The origin chose a WebSocket extension that was not offered."
	errFrame      refusal = "The origin sent a WebSocket frame that cannot be scanned."
)

func (r refusal) Error() string { return "scanning the answer: " + string(r) }

// Reason is the word for the record (RULES.md).
func (refusal) Reason() string { return "credential_leak" }

// Status is that of the problem document: it is the origin's answer that is
// kept back, not a request that is refused.
func (refusal) Status() int { return http.StatusBadGateway }

// Detail is the sentence of the problem document.
func (r refusal) Detail() string { return string(r) }
