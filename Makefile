# Everything that a contributor does here; CI calls the same targets.
# Needs Go and make. `make test` says what else it uses, and what is missing.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VERSION ?= dev
IMAGE   ?= dunlin:$(VERSION)
FUZZTIME ?= 10s
INPUTS ?= 1000000
CHECKTIME ?= 10m
ROUNDS ?= 20
# Empty: images are built for both architectures, and run where there is a Docker engine.
DEPLOYFLAGS ?= -short
ARCHS ?= $(shell go env GOARCH)

# Tools are built once, for this repository only, with their version in the name.
LINT_VERSION := v2.15.0
TOOLS := $(CURDIR)/bin/tools
LINT  := $(TOOLS)/golangci-lint-$(LINT_VERSION)

# Tests of whole clusters run one package at a time, and beside nothing else: they measure.
PACKAGES = go list ./... | grep -v /test/

GO_FILES = git ls-files --cached --others --exclude-standard -- '*.go'

.PHONY: help
help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: build ## build, and start three nodes and a proxy on 127.0.0.1:6379
	@exec bin/dunlin local

.PHONY: build
build: ## build bin/dunlin, static
	@command -v go >/dev/null || { echo "missing: go 1.26 or newer (https://go.dev/dl)"; exit 1; }
	CGO_ENABLED=0 go build -trimpath -ldflags "-X main.release=$(VERSION)" -o bin/dunlin ./cmd/dunlin

# Stages of `make test`, one after the other; those of the last line run beside each other.
STAGES := build lint unit race portable
BESIDE := checked page deployment
STAGE   = begin=$$SECONDS; echo "== $(1)"; $(MAKE) --no-print-directory $(2) $(1); echo "== $(1): $$((SECONDS - begin)) s"

.PHONY: test
test: have ## everything that proves it: vet, linters, unit and end-to-end tests, race detector
	@$(foreach stage,$(STAGES),$(call STAGE,$(stage));) $(call STAGE,$(BESIDE),-j3 --output-sync)

# What changed since the branch left BASE, committed or not. Packages below test/ start whole
# clusters, which takes longer; the rules about imports are checked always.
BASE ?= $(shell git merge-base HEAD origin/main 2>/dev/null || git merge-base HEAD main 2>/dev/null || echo HEAD)
CHANGED = { git diff --name-only $(BASE) -- '*.go'; git ls-files --others --exclude-standard -- '*.go'; } | \
  xargs -r -n1 dirname | sort -u | grep -v -e '^test' -e '^deploy' | while read -r dir; do \
  [ -z "$$(ls "$$dir"/*.go 2>/dev/null)" ] || echo "./$$dir"; done

.PHONY: quick
quick: $(LINT) ## before each commit, under two minutes: vet, and lint and unit tests of packages that changed since BASE
	@go vet ./...
	@changed=$$($(CHANGED) || true); echo "changed since $(BASE):" $$changed; \
	  [ -z "$$changed" ] || { $(LINT) run $$changed; go test -short -timeout 2m $$changed; }
	@go test -run '^TestImport' ./test

.PHONY: lint
lint: $(LINT) ## go vet, gofmt and golangci-lint
	go vet ./...
	@unformatted=$$($(GO_FILES) | xargs -r gofmt -l); \
	  if [ -n "$$unformatted" ]; then echo "not formatted (make fmt):"; echo "$$unformatted"; exit 1; fi
	$(LINT) run ./...
	cd deploy/tests && go vet ./... && $(LINT) run ./...
	cd test/page && go vet ./... && $(LINT) run ./...

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME (10s) each
	@go list ./... | while read -r pkg; do \
	  for f in $$(go test -list '^Fuzz' "$$pkg" | grep '^Fuzz' || true); do \
	    echo "== $$pkg $$f"; go test -tags checked -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) "$$pkg"; \
	  done; done

.PHONY: check
check: ## check order and correctness under faults for CHECKTIME (10m); CHECKSEED repeats a run's commands and faults
	go test -count 1 -timeout 0 -run '^TestCheck$$' -v ./test/chaos -check.time $(CHECKTIME) -check.seed $(or $(CHECKSEED),0)

.PHONY: scenarios
scenarios: ## kill, stop, cut off, drain and add nodes under load, ROUNDS (20) times each, with figures, about an hour and a half; ONLY=Kill: one
	go test -count 1 -timeout 0 -run '^TestScenario$(ONLY)' -v ./test/scenarios -scenario.full -chaos.rounds $(ROUNDS)

.PHONY: differ
differ: ## compare node and proxy with redis-server on a million broken inputs, two minutes (INPUTS=)
	go test -count 1 -timeout 0 -run '^TestDifferential$$' -v ./test/differential -differential.inputs $(INPUTS)

.PHONY: clients
clients: ## fetch and build the client libraries that the tests run, two minutes (test/clients)
	@test/clients/install

.PHONY: matrix
matrix: ## run these clients through a proxy, and write the table of their versions
	MATRIX_TABLE=$(CURDIR)/test/clients/VERSIONS.md go test -count 1 -run '^TestClientMatrix$$' -v ./test/clients

.PHONY: bench
bench: ## race Dunlin against redis-server, memcached and twemproxy, about ten minutes (less: RACE='--rounds 1', all: RACE=--full)
	@mkdir -p bin
	go run ./bench/race --picture bin/race.svg $(RACE)

.PHONY: bench-scale
bench-scale: ## print what a command costs with more nodes, clients, loops, and with a hot key, about four minutes
	@mkdir -p bin
	go run ./bench/race --curves all --picture bin/scale.svg $(RACE)

.PHONY: bench-engine
bench-engine: ## print the engine's tables, about 25 minutes (less: TABLES='-quick -tables speed,density')
	go run ./bench/engine $(TABLES)

.PHONY: pgo
pgo: ## refresh the profile that builds are optimised by (a minute, on a quiet machine)
	bench/pgo.sh

.PHONY: image
image: ## build the container image IMAGE (dunlin:dev); with ARCHS="amd64 arm64" push one for both
	@command -v docker >/dev/null || { echo "missing: docker"; exit 1; }
	for arch in $(ARCHS); do \
	  CGO_ENABLED=0 GOOS=linux GOARCH=$$arch go build -trimpath -ldflags "-s -w -X main.release=$(VERSION)" -o bin/image/$$arch/dunlin ./cmd/dunlin; done
ifeq ($(words $(ARCHS)),1)
	docker build -f deploy/docker/Dockerfile --build-arg TARGETARCH=$(ARCHS) -t $(IMAGE) bin/image
else
	docker buildx build -f deploy/docker/Dockerfile --platform "$$(printf 'linux/%s,' $(ARCHS) | sed 's/,$$//')" -t $(IMAGE) --push bin/image
endif

.PHONY: fmt
fmt: ## format all Go files
	$(GO_FILES) | xargs -r gofmt -w

.PHONY: clean
clean: ## remove what was built
	rm -rf bin coverage*

# The parts of `make test`.

# Says what the tests use beyond Go. What is merely compared with (a real Redis)
# is skipped where it is missing; what proves correctness is required.
.PHONY: have
have:
	@command -v go >/dev/null || { echo "missing: go 1.26 or newer (https://go.dev/dl)"; exit 1; }
	@for tool in redis-server redis-cli redis-benchmark; do \
	  command -v $$tool >/dev/null || echo "missing: $$tool (Debian: apt-get install redis-server redis-tools); tests against it are skipped"; done
	@command -v ip >/dev/null || echo "missing: ip (Debian: apt-get install iproute2); the tests that cut networks are skipped"
	@for tool in promtool openssl; do \
	  command -v $$tool >/dev/null || echo "missing: $$tool (Debian: apt-get install prometheus openssl); tests of deploy/ that use it are skipped"; done
	@command -v chromium >/dev/null || echo "missing: chromium (Debian: apt-get install chromium); the live page is not drawn"
	@command -v "$$(go env CC)" >/dev/null || { \
	  echo "missing: $$(go env CC), a C compiler (Debian: apt-get install gcc libc6-dev): the race detector needs it"; exit 1; }

.PHONY: unit
unit:
	go test -timeout 10m $$($(PACKAGES))
	go test -p 1 -timeout 10m ./test/...

# The tests that measure allocations or load the whole Go tree skip themselves
# here: -short and the race detector's own build tag. With the tag checked, the
# engine looks at every handle and overwrites what is freed.
.PHONY: race
race:
	CGO_ENABLED=1 go test -race -tags checked -short -timeout 8m $$($(PACKAGES))
	CGO_ENABLED=1 go test -p 1 -race -tags checked -short -timeout 8m ./test/...

# The engine's tests of one goroutine, in which the race detector would see nothing.
.PHONY: checked
checked:
	go test -tags checked -gcflags=-d=checkptr -short -timeout 5m ./node/engine

# The form of netloop and its neighbours for systems other than Linux: run here, built and vetted for
# macOS. The tests of cmd/dunlin start nodes and proxies, together and as processes of their own.
.PHONY: portable
portable:
	go test -tags portable -timeout 5m ./internal/mapping ./internal/netloop ./internal/tlsbridge ./cmd/dunlin
	@for arch in amd64 arm64; do export GOOS=darwin GOARCH=$$arch CGO_ENABLED=0; \
	  echo "go vet and go build for darwin/$$arch"; \
	  go vet $$(go list -deps ./cmd/dunlin | grep "^$$(go list -m)/"); \
	  go build -o /dev/null ./cmd/dunlin; done

# The live page in a real browser. SCREENSHOTS=dir leaves pictures.
.PHONY: page
page:
	cd test/page && go test -timeout 5m ./...

# Manifests, image, alerts: what deploy/ promises, in a module of its own.
.PHONY: deployment
deployment:
	cd deploy/tests && go test $(DEPLOYFLAGS) -timeout 10m ./...

# Cold, this takes about three minutes on two cores.
$(LINT):
	@echo "building golangci-lint $(LINT_VERSION) into bin/tools, once"
	@mkdir -p $(TOOLS)
	GOBIN=$(TOOLS) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)
	@mv $(TOOLS)/golangci-lint $(LINT)
