package proxytest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Databricks stands in for workspaces of Databricks, one for each name that it
// is called by: who one is, the list of clusters in two pages, and a job that is
// run; all for the right bearer only. A workspace with a ClientID is logged into
// at /oidc/v1/token, as machines do (RFC 6749, 4.4). In its answers it shows its
// caller's token.
type Databricks struct {
	// Workspaces by host.
	Workspaces map[string]*Workspace

	mu      sync.Mutex
	foreign []string
}

// Workspace is who gets in.
type Workspace struct {
	// Token gets in; "" for none.
	Token string
	// ClientID and ClientSecret get tokens that live for Life, each for Bearer
	// and its number: "Bearer1", "Bearer2".
	ClientID, ClientSecret string
	Bearer                 string
	Life                   time.Duration

	minted int
	calls  int
	ends   map[string]time.Time
}

// Foreign are logins that were wrong, as host and field.
func (d *Databricks) Foreign() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.foreign...)
}

// Calls says how many calls of a workspace had the right login, and how many
// tokens it made.
func (d *Databricks) Calls(host string) (calls, minted int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.Workspaces[host].calls, d.Workspaces[host].minted
}

// ServeHTTP answers one call.
func (d *Databricks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	space := d.Workspaces[r.Host]
	if space == nil {
		http.NotFound(w, r)
		return
	}
	if r.URL.Path == "/oidc/v1/token" {
		space.mint(w, r)
		return
	}
	login := r.Header.Get("Authorization")
	token, ok := strings.CutPrefix(login, "Bearer ")
	if live := token == space.Token || time.Now().Before(space.ends[token]); !ok || token == "" || !live {
		d.foreign = append(d.foreign, r.Host+" "+login)
		answerJSON(w, http.StatusUnauthorized, map[string]any{"error_code": "UNAUTHENTICATED", "message": "Credential was not sent or was of an unsupported type: " + login})
		return
	}
	space.calls++
	switch r.Method + " " + r.URL.Path {
	case "GET /api/2.0/preview/scim/v2/Me":
		answerJSON(w, http.StatusOK, map[string]any{"userName": "ann@" + r.Host, "displayName": token})
	case "GET /api/2.1/clusters/list":
		page := r.URL.Query().Get("page_token")
		if page == "" {
			answerJSON(w, http.StatusOK, map[string]any{"clusters": []any{map[string]any{"cluster_id": "one", "cluster_name": token}}, "next_page_token": "two"})
			return
		}
		answerJSON(w, http.StatusOK, map[string]any{"clusters": []any{map[string]any{"cluster_id": page, "cluster_name": token}}})
	case "POST /api/2.1/jobs/run-now", "POST /api/2.2/jobs/run-now":
		var job struct {
			ID int64 `json:"job_id"`
		}
		if err := json.NewDecoder(r.Body).Decode(&job); err != nil {
			answerJSON(w, http.StatusBadRequest, map[string]any{"error_code": "MALFORMED_REQUEST"})
			return
		}
		answerJSON(w, http.StatusOK, map[string]any{"run_id": job.ID * 10})
	default:
		answerJSON(w, http.StatusNotFound, map[string]any{"error_code": "ENDPOINT_NOT_FOUND"})
	}
}

// mint makes a token for a machine.
func (s *Workspace) mint(w http.ResponseWriter, r *http.Request) {
	id, secret, _ := r.BasicAuth()
	switch {
	case s.ClientID == "" || id != s.ClientID || secret != s.ClientSecret:
		answerJSON(w, http.StatusUnauthorized, map[string]any{"error": "invalid_client", "error_description": "the secret " + secret + " is wrong"})
	case r.Method != http.MethodPost || r.FormValue("grant_type") != "client_credentials" || r.FormValue("scope") != "all-apis":
		answerJSON(w, http.StatusBadRequest, map[string]any{"error": "invalid_request"})
	default:
		s.minted++
		token := fmt.Sprintf("%s%d", s.Bearer, s.minted)
		if s.ends == nil {
			s.ends = map[string]time.Time{}
		}
		s.ends[token] = time.Now().Add(s.Life)
		answerJSON(w, http.StatusOK, map[string]any{"access_token": token, "token_type": "Bearer", "expires_in": int(s.Life.Seconds()), "scope": "all-apis"})
	}
}

func answerJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
