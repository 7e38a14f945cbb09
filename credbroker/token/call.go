package token

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"
)

// patience is how long an endpoint may take for its whole answer.
const patience = 30 * time.Second

// maxAnswer bounds an answer, in bytes. GitHub lists an installation's
// repositories in it.
const maxAnswer = 1 << 20

// post sends body to a URL and returns the status and the body of the answer.
// It asks the Transport and no http.Client, which would follow a redirect,
// keep cookies, and send the user of a URL.
func (c Calls) post(ctx context.Context, doing, url, body string, header http.Header) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return 0, nil, &Failure{Doing: doing, Why: "the URL cannot be read"}
	}
	req.Header = header
	req.Header.Set("User-Agent", "egressd")
	res, err := c.Transport.RoundTrip(req)
	if err != nil {
		return 0, nil, unreached(ctx, doing, err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	if err != nil {
		return 0, nil, unreached(ctx, doing, err)
	}
	if len(answer) > maxAnswer {
		return 0, nil, &Failure{Doing: doing, Status: res.StatusCode, Why: "the answer is too long"}
	}
	return res.StatusCode, answer, nil
}
