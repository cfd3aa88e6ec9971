# All that a contributor runs; CI runs the same targets. Needs Go and make. `make test` lists the
# other tools that it uses and that are missing.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VERSION ?= dev
IMAGE   ?= dunlin:$(VERSION)
FUZZTIME ?= 10s
INPUTS ?= 1000000
CHECKTIME ?= 10m
ROUNDS ?= 20
STOCK ?= 2048
TIME ?= 1h
# -short skips building images. Empty: build them for both architectures, and run them where Docker is available.
DEPLOYFLAGS ?= -short
ARCHS ?= $(shell go env GOARCH)

# Tools are built once, for this repository only. Their names contain the version.
LINT_VERSION := v2.15.0
TOOLS := $(CURDIR)/bin/tools
LINT  := $(TOOLS)/golangci-lint-$(LINT_VERSION)

# Packages in whose code or tests something runs concurrently, or that use memory unsafely. In all
# others the race detector could find nothing; what they export it watches where it is used.
# What is in test has no concurrency of its own.
ACTS = ^\s*go [a-zA-Z]|\.Go\(|[tb]\.(Parallel|RunParallel)|httptest\.|synctest\.|time\.AfterFunc|unsafe\.(Pointer|String|Slice|Add)
PACKAGES   = go list -f '{{.ImportPath}} {{.Dir}}' $$(go list ./... | grep -v /test/) | while read -r pkg dir; do
CONCURRENT = $(PACKAGES) ! grep -qE '$(ACTS)' "$$dir"/*.go || echo "$$pkg"; done
SEQUENTIAL = $(PACKAGES) grep -qE '$(ACTS)' "$$dir"/*.go || echo "$$pkg"; done; echo ./test/sim
# Those of node/data run with the build tag checked and checkptr, which see more in them than a plain run.
CHECKED = /node/data/

# The tests collect garbage less often than a process does: a node in a test has little in the Go heap, so that the runtime
# would collect every few MiB. Those of `checked`, and the whole clusters, collect as usual. It is for the tests alone, not
# for the compiler, which with GOGC would begin with a small heap.
LAZILY = -exec 'env GOGC=400'

# No test runs twice alike. Those of concurrent packages run under the race detector; those that it or
# -short skips or shortens run without it, too. unraced.awk finds them in the files given.
unraced = awk -f test/unraced.awk $(1) again=1 $(1)
# The concurrent packages that have such tests, with their folders.
AGAIN = $(PACKAGES) ! grep -qE '$(ACTS)' "$$dir"/*.go || case "$$($(call unraced,"$$dir"/*_test.go) 2>/dev/null)" in \
  '' | '^()$$') ;; *) echo "$$pkg $$dir";; esac; done

# Of test/cluster and test/clients, under the race detector run the files in which several clients work at once: it
# would find nothing more in the others, whose tests run without it. WHOLE=1 runs all of them.
WHOLE ?=
SEVERAL       = ^\s*go [a-zA-Z]|\.Go\(|\.Send\(
ONE_AT_A_TIME = $(if $(WHOLE),echo /dev/null,grep -LE '$(SEVERAL)' $(1)/*_test.go)
tests_of = awk '/^func Test/ { split($$2, name, "("); printf "%s^%s$$", sep, name[1]; sep = "|" } END { if (!sep) print "^$$" }' $(1)
alone    = $(call tests_of,$$($(call ONE_AT_A_TIME,$(1))))

# Tests of node with one client at a time, which change values at random, or in every way, or fill a node. The engine
# checks every handle (checked); test/differential gives such commands to the binary.
ONE_CLIENT = ^Test(Hashes|Lists|Sets|SortedSets|Corridor|StreamPayloadsWithRedis|BigStreamPayloads|RestoreOfBrokenStreams|Oracle|SetsOracle|SetAlgebra|SketchesAsInRedis|OracleOfDatabases|ConversationsInDatabases|NoEviction|ConfigSetMemory|LongElements|LongLists|LongSortedSets|LongMembers|Quarter|QuarterExceeded|HashesAreEvictedWhole|ManySources|ManyElements|DestinationOutlivesOOM|KeysIsCharged|HostileLibraries|ManyKeysAreNotCopied|LongRequestIsCounted|SortOfLongStrings|BuffersEvict|RefusedRepliesHoldNothing|StreamsOfCorridor|RestoreOfStreamWithoutMemory|SPopIsUniform|ClusterScan|PlainSetsAsSources|UnlistedRequestKeepsItsInput|RandomFieldAmongExpired|RestoreFromRedis|WatchedKeysAreBounded)$$

# Only the binary is optimized by its profile. For tests and linters that would compile every package
# twice, because cmd/dunlin needs its own form of all.
quick lint unit race checked earlier law portable macos raced-first raced-second raced-others raced-clusters raced-chaos raced-libraries libraries clusters measured: export GOFLAGS += -pgo=off

GO_FILES = git ls-files --cached --others --exclude-standard -- '*.go'

.PHONY: help
help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: build ## build and start three nodes and a proxy on 127.0.0.1:6379
	@exec bin/dunlin local

.PHONY: build
build: ## build bin/dunlin, a static binary
	@command -v go >/dev/null || { echo "missing: go 1.26 or newer (https://go.dev/dl)"; exit 1; }
	CGO_ENABLED=0 go build -trimpath -ldflags "-X main.release=$(VERSION)" -o bin/dunlin ./cmd/dunlin

# Stages of `make test`. Of TWO and CLUSTERS two targets run at a time, the longest first. Beside them others compute
# while they wait: those of COMPILES from the beginning of TWO, and those of BESIDE, which measure processor time, from
# the beginning of CLUSTERS. Those of MEASURED judge how long things take, and run one at a time.
FIRST    := build lint
TWO      := raced-first raced-second raced-others unit portable page deployment
CLUSTERS := raced-clusters libraries raced-chaos clusters raced-libraries
MEASURED := measured
COMPILES := earlier macos
BESIDE   := law checked
JOBS     := 2
# With CALM=1 one target runs at a time and none beside, and one package of it: for a second look at tests that failed on
# a busy machine.
ifdef CALM
export GOFLAGS := $(GOFLAGS) -p=1
TWO      += $(COMPILES) $(BESIDE)
COMPILES := have
BESIDE   := have
JOBS     := 1
endif
IDLE     = chrt -i -p 0 $$BASHPID 2>/dev/null || renice -n 19 -p $$BASHPID >/dev/null
STAGE    = begin=$$SECONDS; echo "== $(1)"; $(MAKE) --no-print-directory $(2) $(1) || failed=1; echo "== $(1): $$((SECONDS - begin)) s"
STOP     = [ $$failed = 0 ] || exit 1
IDLY     = ( $(IDLE); failed=0; $(call STAGE,$(1),-k -j$(JOBS) --output-sync); $(STOP) ) >bin/$(firstword $(1)).log 2>&1

# Whatever fails, the stages after lint run, so that one run shows all that fails.
.PHONY: test
test: have ## run every check: vet, linters, unit and end-to-end tests, race detector
	@failed=0; $(foreach stage,$(FIRST),$(call STAGE,$(stage)); $(STOP);) \
	  $(call IDLY,$(COMPILES)) & compiles=$$!; $(call STAGE,$(TWO),-k -j$(JOBS) --output-sync); \
	  $(call IDLY,$(BESIDE)) & beside=$$!; \
	  $(call STAGE,$(CLUSTERS),-k -j$(JOBS) --output-sync); $(call STAGE,$(MEASURED),-k); \
	  for idly in $$compiles $$beside; do wait $$idly || failed=1; done; \
	  cat $(foreach idly,$(firstword $(COMPILES)) $(firstword $(BESIDE)),bin/$(idly).log); exit $$failed

# The packages that changed since the branch left BASE, committed or not. Packages below test/ are
# left out, because they start whole clusters; the rules about imports are always checked.
BASE ?= $(shell git merge-base HEAD origin/main 2>/dev/null || git merge-base HEAD main 2>/dev/null || echo HEAD)
CHANGED = { git diff --name-only $(BASE) -- '*.go'; git ls-files --others --exclude-standard -- '*.go'; } | \
  xargs -r -n1 dirname | sort -u | grep -v -e '^test' -e '^deploy' | while read -r dir; do \
  [ -z "$$(ls "$$dir"/*.go 2>/dev/null)" ] || echo "./$$dir"; done

.PHONY: quick
quick: $(LINT) ## check before a commit, under two minutes: vet, and lint and test the packages changed since BASE
	@go vet ./...
	@changed=$$($(CHANGED) || true); echo "changed since $(BASE):" $$changed; \
	  [ -z "$$changed" ] || { $(LINT) run --allow-parallel-runners $$changed; go test -short -timeout 2m $$changed; }
	@go test -run '^TestImport' ./test

.PHONY: lint
lint: $(LINT) ## run go vet, gofmt and golangci-lint
	go vet ./...
	go vet -tags checked ./node/engine
	go vet -tags portable ./internal/mapping ./internal/netloop ./internal/tlsbridge
	@unformatted=$$($(GO_FILES) | xargs -r gofmt -l); \
	  if [ -n "$$unformatted" ]; then echo "not formatted (make fmt):"; echo "$$unformatted"; exit 1; fi
	$(LINT) run --allow-parallel-runners ./...
	cd deploy/tests && go vet ./... && $(LINT) run --allow-parallel-runners ./...
	cd test/page && go vet ./... && $(LINT) run --allow-parallel-runners ./...

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME (10s) each
	@go list ./... | while read -r pkg; do \
	  for f in $$(go test -list '^Fuzz' "$$pkg" | grep '^Fuzz' || true); do \
	    echo "== $$pkg $$f"; go test -tags checked -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) "$$pkg"; \
	  done; done

.PHONY: check
check: ## check order and correctness under faults for CHECKTIME (10m); CHECKSEED repeats a run
	go test -count 1 -timeout 0 -run '^TestCheck$$' -v ./test/chaos -check.time $(CHECKTIME) -check.seed $(or $(CHECKSEED),0)

.PHONY: soak
soak: ## let hostile clients work beside well-behaved ones for TIME (1h); ONLY='BITOP,silent' runs some, SEED repeats a run
	go test -count 1 -timeout 0 -run '^TestSoak$$' -v ./test/soak -soak.time $(TIME) -soak.seed $(or $(SEED),0) -soak.only '$(ONLY)'

.PHONY: scenarios
scenarios: ## kill, stop, cut off, drain and add nodes under load, ROUNDS (20) times each, about 90 minutes; ONLY=Kill runs one
	go test -count 1 -timeout 0 -run '^TestScenario$(ONLY)' -v ./test/scenarios -scenario.full -chaos.rounds $(ROUNDS)

.PHONY: stock
stock: ## do the same to a cluster full of STOCK (2048) MB of collections, for half an hour
	go test -count 1 -timeout 60m -run '^TestScenarioCollections$$' -v ./test/scenarios -scenario.stock $(STOCK) -scenario.within 40m

.PHONY: differ
differ: ## compare node and proxy with redis-server on INPUTS (1000000) malformed inputs, and as many commands on all types
	go test -count 1 -timeout 0 -run '^TestDifferential$$' -v ./test/differential -differential.inputs $(INPUTS)
	go test -count 1 -timeout 0 -run '^TestTypes$$/^all$$' -v ./test/differential -differential.commands $(INPUTS)

.PHONY: clients
clients: ## fetch and build the client libraries that the tests use, about two minutes (test/clients)
	@test/clients/install

.PHONY: matrix
matrix: ## test these client libraries through a proxy and write the table of their versions
	MATRIX_TABLE=$(CURDIR)/test/clients/VERSIONS.md go test -count 1 -run '^TestClientMatrix$$' -v ./test/clients
	go test -count 1 -run '^TestApplicationsAtRedis$$' -v ./test/clients -clients.redis

.PHONY: bench
bench: ## compare Dunlin with redis-server, memcached and twemproxy, about ten minutes (RACE='--rounds 1': fewer, RACE=--full: all)
	@mkdir -p bin
	go run ./bench/race --picture bin/race.svg $(RACE)

.PHONY: bench-types
bench-types: ## compare collections, scripts and pub/sub with redis-server and twemproxy, about half an hour (RACE=--short: five)
	go run ./bench/race --types all $(RACE)

.PHONY: bench-scale
bench-scale: ## print the cost of a command by number of nodes, clients and loops, and with a hot key, about four minutes
	@mkdir -p bin
	go run ./bench/race --curves all --picture bin/scale.svg $(RACE)

.PHONY: bench-engine
bench-engine: ## print the engine's speed and density tables, about 25 minutes (TABLES='-quick -tables speed,density': fewer)
	go run ./bench/engine $(TABLES)

.PHONY: pgo
pgo: ## refresh the profile for profile-guided optimisation, about a minute on an idle machine
	bench/pgo.sh

.PHONY: image
image: ## build the container image IMAGE (dunlin:dev); ARCHS="amd64 arm64" builds and pushes one for both
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
clean: ## remove build output
	rm -rf bin coverage*

# The parts of `make test`. `go test` vets nothing here: lint has.

# Lists missing tools. Tests that compare with a tool, such as a real Redis, are skipped without it.
# Tools that prove correctness are required.
.PHONY: have
have:
	@command -v go >/dev/null || { echo "missing: go 1.26 or newer (https://go.dev/dl)"; exit 1; }
	@for tool in redis-server redis-cli redis-benchmark; do \
	  command -v $$tool >/dev/null || echo "missing: $$tool (Debian: apt-get install redis-server redis-tools); tests against it are skipped"; done
	@command -v lua5.1 >/dev/null || echo "missing: lua5.1 (Debian: apt-get install lua5.1); tests against it are skipped"
	@command -v ip >/dev/null || echo "missing: ip (Debian: apt-get install iproute2); tests that cut networks are skipped"
	@for tool in promtool openssl; do \
	  command -v $$tool >/dev/null || echo "missing: $$tool (Debian: apt-get install prometheus openssl); tests of deploy/ that use it are skipped"; done
	@command -v chromium >/dev/null || echo "missing: chromium (Debian: apt-get install chromium); tests of the live page are skipped"
	@command -v "$$(go env CC)" >/dev/null || { \
	  echo "missing: $$(go env CC), a C compiler (Debian: apt-get install gcc libc6-dev): the race detector needs it"; exit 1; }

.PHONY: unit
unit:
	go test -vet=off -p 1 $(LAZILY) -timeout 10m $$({ $(SEQUENTIAL); } | grep -vE '$(CHECKED)')
	go test -vet=off -p 1 -run "$$($(call unraced,node/data/*/*_test.go))" -timeout 10m \
	  $$(dirname $$(grep -lE 'testing\.Short|AllocsPerRun' node/data/*/*_test.go) | sort -u | sed 's|^|./|')
	again=$$($(AGAIN)); files=$$(printf '%s/*_test.go ' $$(cut -d' ' -f2 <<<"$$again")); \
	  go test -vet=off -p 1 -run "$$($(call unraced,$$files))" -skip '$(ONE_CLIENT)' -timeout 10m $$(cut -d' ' -f1 <<<"$$again")

# Tests that measure allocations or load the whole Go tree skip themselves here: they look at -short
# and at the race detector's build tag. With the tag checked, the engine checks every handle and
# overwrites freed memory.
.PHONY: race
race: raced-first raced-second raced-others raced-clusters raced-chaos raced-libraries
RACED = CGO_ENABLED=1 go test -vet=off -p 1 -race -tags checked -short -timeout 20m

# A process with the race detector sleeps before it exits, a second by default, so that goroutines that still run can
# show their races. Each package of tests waits for that once, and tests of processes wait for each that ends in order.
# For each allocation of more than 64 KiB the detector maps its own memory anew, so that each of these pages faults again:
# that was a quarter of the time of node's tests, and half of proxy's. Up to 64 MiB it zeroes them instead.
race raced-first raced-second raced-others raced-clusters raced-chaos raced-libraries: export GORACE := atexit_sleep_ms=50 clear_shadow_mmap_threshold=67108864

# Two processes run the tests of node, which take longest. What they share is compiled before: no commands, which would
# be linked each time, for nobody.
.PHONY: raced-built raced-first raced-second raced-others
HALF = ^(Test|Fuzz)[A-L]
raced-built:
	CGO_ENABLED=1 go build -race -tags checked $$(go list -f '{{if and .GoFiles (ne .Name "main")}}{{.ImportPath}}{{end}}' ./...)
	$(RACED) -run '^$$' ./node
raced-first: raced-built
	$(RACED) $(LAZILY) -run '$(HALF)' ./node
raced-second: raced-built
	$(RACED) $(LAZILY) -skip '$(HALF)' ./node
raced-others: raced-built # the last one, so that both processors are free
	$(RACED) $(LAZILY) -p 2 $$($(CONCURRENT) | grep -vE '/node$$|/cmd/')
	$(RACED) ./cmd/... # its processes set how often they collect

.PHONY: raced-clusters raced-chaos raced-libraries
raced-clusters:
	$(RACED) -skip "$$($(call alone,test/cluster))" ./test/cluster
raced-chaos:
	$(RACED) ./test/chaos ./test/differential
raced-libraries:
	$(RACED) -skip "$$($(call alone,test/clients))" ./test/clients

# Tests of whole clusters that the race detector has not seen, or that it shortens.
.PHONY: libraries clusters
libraries:
	go test -vet=off -run "$$($(call unraced,test/clients/*_test.go))|$$($(call alone,test/clients))" -timeout 15m ./test/clients
clusters:
	go test -vet=off -run "$$($(call unraced,test/cluster/*_test.go))|$$($(call alone,test/cluster))" -timeout 10m ./test/cluster
	go test -vet=off -p 1 -run "$$($(call unraced,test/differential/*_test.go))|$$($(call tests_of,test/soak/*_test.go))" -timeout 10m ./test/differential ./test/soak

# What a node's death or a cut costs the clients. Under the race detector test/chaos runs whole, but for the tests
# that skip themselves there; without it those run, and test/scenarios does the same to nodes as the others.
.PHONY: measured
measured:
	go test -vet=off -run "$$($(call unraced,test/chaos/*_test.go))" -timeout 10m ./test/chaos
	go test -vet=off -timeout 10m ./test/scenarios

# Compiles the commits from which tests upgrade. Without this the stage of `measured` would wait for it.
.PHONY: earlier
earlier:
	go test -vet=off -p 1 -run Upgrade -timeout 40m ./test/cluster ./test/chaos -harness.build

# The engine's tests that use one goroutine, and the nodes' that use one client, in which the race
# detector would find nothing. With SHORT_RUNS, commands on streams do next to nothing in one run,
# so that small streams take many runs: big ones would show nothing more, nor would the streams between nodes.
NOT_SHORT = ^Test(BigStreamPayloads|Stream(HandsOver|SecondGeneration|SurvivesCuts|ThrottlesSnapshots|ToStoppedReceiver))
.PHONY: checked
checked:
	go test -vet=off -p 1 -tags checked -gcflags=-d=checkptr -short -timeout 20m ./node/engine ./node/data/...
	go test -vet=off -tags checked -run '$(ONE_CLIENT)' -timeout 20m ./node
	SHORT_RUNS=1 go test -vet=off -p 1 -tags checked -run 'Stream|TestX' -skip '$(NOT_SHORT)' -timeout 20m ./node ./node/data/streams

# The test of all commands, which measures how long they keep a loop and lock a shard, in processor time, and those
# of the locks while big values are made, read, copied, moved and freed.
.PHONY: law
law:
	go test -vet=off -tags checked $(LAZILY) -run '^Test(TimeLaw|LockTimes)' -timeout 30m ./node

# The portable form of netloop and its neighbours, for systems other than Linux, is tested here. The tests of
# cmd/dunlin start nodes and proxies, in one process and in several.
.PHONY: portable
portable:
	go test -vet=off -tags portable -timeout 5m ./internal/mapping ./internal/netloop ./internal/tlsbridge ./cmd/dunlin

# It is built for macOS, and the packages are vetted that have other files there, or other tests. No file is for one
# kind of processor, so one is enough.
FILES = go list -deps -f '{{.ImportPath}} {{.GoFiles}} {{.TestGoFiles}} {{.XTestGoFiles}}' ./cmd/dunlin
.PHONY: macos
macos: export GOOS := darwin
macos: export GOARCH := arm64
macos: export CGO_ENABLED := 0
macos:
	go build -o /dev/null ./cmd/dunlin
	go vet $$({ $(FILES); GOOS=linux $(FILES); } | sort | uniq -u | cut -d' ' -f1 | sort -u | grep "^$$(go list -m)/")

# The live page in a real browser. SCREENSHOTS=dir leaves pictures.
.PHONY: page
page:
	cd test/page && go test -timeout 5m ./...

# Manifests, image and alerts: the promises of deploy/, tested in a module of their own.
.PHONY: deployment
deployment:
	cd deploy/tests && go test $(DEPLOYFLAGS) -timeout 10m ./...

# With cold caches this takes about three minutes on two cores.
$(LINT):
	@echo "building golangci-lint $(LINT_VERSION) into bin/tools, once"
	@mkdir -p $(TOOLS)
	GOBIN=$(TOOLS) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)
	@mv $(TOOLS)/golangci-lint $(LINT)
