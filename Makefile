# Two commands do everything on a fresh Debian machine with Go:
#   make run    installs what is missing, builds, and shows the main job
#   make test   installs what the tests need, then runs them all

GO ?= go
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK = golang.org/x/vuln/cmd/govulncheck@latest

.PHONY: run build man test lint cross fuzz soak bench deps-run deps-test clean

build:
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags "-s -w" -o egressd ./cmd/egressd

# Manual pages, one for each command, below man/; `egressd completion` prints
# what shells complete by.
man:
	$(GO) run -tags man ./cmd/egressd man man

run: deps-run build
	bash examples/tour/run.sh ./egressd

test: deps-test
	$(GO) test -race -timeout 20m ./...
	$(GO) test -count=1 -run '^TestCost$$' ./netns  # a race build ends each process a second late

deps-run:
	bash .ci/deps run

deps-test:
	bash .ci/deps test

lint:
	@out=$$(gofmt -l $$(git ls-files '*.go')); [ -z "$$out" ] || { echo "not gofmt-clean: $$out"; exit 1; }
	$(GO) vet ./...
	$(GO) run $(STATICCHECK) ./...

# The platforms that nothing is run on here: macOS, whose sandbox is written and
# not yet run, and Linux on ARM.
cross:
	@for target in darwin/arm64 darwin/amd64 linux/arm64; do \
	  echo "== $$target"; export GOOS=$${target%/*} GOARCH=$${target#*/} CGO_ENABLED=0; \
	  $(GO) vet ./... && $(GO) build -o /dev/null ./... || exit 1; \
	done

# Each fuzz target for FUZZTIME; a finding is written below testdata/fuzz.
FUZZTIME ?= 60s
fuzz:
	@for pkg in $$($(GO) list ./...); do \
	  for f in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
	    echo "== $$pkg $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) $$pkg || exit 1; \
	  done; \
	done

soak: deps-test
	EGRESSD_SOAK=1 $(GO) test -timeout 60m ./...

# The harness lies beside the checkout (../shared/bench); docs/benchmarks.md
# says what the figures mean.
bench: build
	EGRESSD=$(CURDIR)/egressd bash ../shared/bench/bench.sh run raw hand egressd-nocred
	bash examples/bench-start.sh ./egressd

clean:
	rm -rf egressd man
