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

# `make test` leaves out what takes long and seldom finds more. `make test WHOLE=1` runs that as well: before a release.
# The lists below say what it is. test/makefile_test.go checks that their tests exist.
WHOLE ?=
# later is an argument of -skip: the first list, unless WHOLE is set, and the second.
later = '$(if $(WHOLE),^$$,$(1))$(if $(2),|$(2))'

# Packages that use memory unsafely from one goroutine at a time: checkptr, in `unit`, sees as much of that as the race
# detector, of which it is a part.
POINTERS = /(internal/lua|ring)$$
# In most tests of node/engine one goroutine does everything. `checked` runs them all; the race detector watches the files
# in which another one works beside the test.
TOGETHER = ^\s*go [a-zA-Z]|\.Go\(|[tb]\.(Parallel|RunParallel)|synctest\.|time\.AfterFunc|HugePages
tests_of = awk '/^func (Test|Fuzz)/ { split($$2, name, "("); printf "%s^%s$$", sep, name[1]; sep = "|" }' $(1)
# Tests of node and proxy that take seconds under the race detector and little time without it: they have one client,
# or several that take turns, and large values. They run without it and with the tag checked, in `unit`.
SLOW_RACED = ^Test(BlockedByHold|BlockedFull|ClientListOfMany|CopiesOfLargeValues|DumpOfChangingStream|GatherLarge|HashesReachTheFollower|Histories|LargeCombinations|LargeConditions|ListsReachTheFollower|LowerLimitAnswersSoon|MoveTakesManyElementsAlong|PinnedReplies|PinsEndWithTheirConnection|PopsDoNotPause|RandomKeys|ReadsOfManyStreams|RefusedUploads|Rewrites|RewritesOfBits|RewritesOfNothing|RewriteWithoutMemoryBesideTheOld|ScanLarge|SetsReachTheFollower|SlowReaderIsTold|SlowReadersGiveWay|SlowTransactionSelects|SortedSetsReachTheFollower|StarvedOutput|StreamsRestoredReachTheFollower|StreamWaitersMany|TransactionRepliesAreBounded|UnreadClientLists|UploadCutOff|Uploads|UploadsEvict|WorkPauses|BurstOfLargeReplies|EarlyRepliesAreBounded|FarTooManyEarlyReplies|HalfClosedClientThatStalls|LargeRepliesOfGoneClients|LargeReplyWaitsForItsReader|LongArgumentsAreQueuedInPlace|LongArgumentsOfWideCommands|LongTransaction|LostLargeReply|ManyKeysForASlowReader|ManyKeysWithLongValues|PushesWaitForALongReply)$$
# The race detector watches the whole clusters in which most happens at once: clients work while members come and go.
# The other tests judge behavior and run without it, which takes a quarter of the time.
RACED_CLUSTERS = ^Test(BlockingMoves|BlockingOrderMoves|CrossSlotElementsKilled|CrossSlotNewKeys|DatabasesWaitAndTell|GoRedisMovesFromADrainedProxy|PinWhileClientsWait|PinWhileClientsWrite|PubSubAtNodesWhileOthersJoinAndLeave|PubSubWhileNodesJoinAndLeave)$$
RACED_FAULTS   = ^Test(ChaosRandom|Check)$$
# Tests of the law that ask again what TestTimeLaw asks, which has the worst of every command: in pipelines, of values
# that are larger still, beside readers, and over connections that end.
LATER_LAWS = ^TestTimeLawOf(AMillion|Ends|LongElements|Pipelines|Reads)$$
# Scenarios that test/chaos has as well, with fewer figures. `make scenarios` runs all, in full.
LATER_SCENARIOS = ^TestScenario(ColdStart|CoordinatorDiesInAMove|CutBetweenNodes|Kill|RollingRestart|Stop)$$
# The upgrade from the first members that could be upgraded, which has to build them. Others begin with younger ones.
LATER_UPGRADES = ^TestUpgrade$$
# A test of the benchmarks.
LATER_TOOLS = ^TestTables$$

# Tests of node with one client at a time, which change values at random, or in every way, or fill a node. The engine
# checks every handle (checked); test/differential gives such commands to the binary.
ONE_CLIENT = ^Test(Hashes|Lists|Sets|SortedSets|Corridor|StreamPayloadsWithRedis|BigStreamPayloads|RestoreOfBrokenStreams|Oracle|SetsOracle|SetAlgebra|SketchesAsInRedis|OracleOfDatabases|ConversationsInDatabases|NoEviction|ConfigSetMemory|LongElements|LongLists|LongSortedSets|LongMembers|Quarter|QuarterExceeded|HashesAreEvictedWhole|ManySources|ManyElements|DestinationOutlivesOOM|KeysIsCharged|HostileLibraries|ManyKeysAreNotCopied|LongRequestIsCounted|SortOfLongStrings|BuffersEvict|RefusedRepliesHoldNothing|StreamsOfCorridor|RestoreOfStreamWithoutMemory|SPopIsUniform|ClusterScan|PlainSetsAsSources|UnlistedRequestKeepsItsInput|RandomFieldAmongExpired|RestoreFromRedis|WatchedKeysAreBounded)$$

# Only the binary is optimized by its profile. For tests and linters that would compile every package
# twice, because cmd/dunlin needs its own form of all.
quick lint unit race checked earlier law portable macos raced-first raced-second raced-others raced-clusters raced-chaos raced-libraries libraries clusters chaos measured: export GOFLAGS += -pgo=off

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

# Stages of `make test`. Of PARTS and CLUSTERS three targets run at a time, the longest first: whole clusters wait
# more than they compute. `libraries` waits most, so it runs beside the targets of PARTS, which compute. Beside them
# others compute while they wait: those of COMPILES from the beginning of PARTS, and those of BESIDE, which measure
# processor time, from the beginning of CLUSTERS. Those of MEASURED judge how long things take, and run one at a time.
FIRST    := build lint
PARTS    := libraries raced-first raced-second raced-others unit portable page deployment
CLUSTERS := clusters chaos raced-clusters raced-chaos $(if $(WHOLE),raced-libraries)
MEASURED := measured
COMPILES := earlier macos
BESIDE   := law checked
JOBS     := 3
# With CALM=1 one target runs at a time and none beside, and one package of it: for a second look at tests that failed on
# a busy machine.
ifdef CALM
export GOFLAGS := $(GOFLAGS) -p=1
PARTS    += $(COMPILES) $(BESIDE)
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
test: have ## vet, linters, unit and end-to-end tests, race detector; WHOLE=1 leaves nothing out, before a release
	@failed=0; $(foreach stage,$(FIRST),$(call STAGE,$(stage)); $(STOP);) \
	  $(call IDLY,$(COMPILES)) & compiles=$$!; $(call STAGE,$(PARTS),-k -j$(JOBS) --output-sync); \
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
	  go test -vet=off -p 1 -run "$$($(call unraced,$$files))" -skip '$(SLOW_RACED)|$(ONE_CLIENT)|'$(call later,$(LATER_TOOLS)) \
	    -timeout 10m $$(cut -d' ' -f1 <<<"$$again")
	go test -vet=off -p 1 -gcflags=-d=checkptr -short -timeout 10m $$($(CONCURRENT) | grep -E '$(POINTERS)')
	go test -vet=off -p 1 -tags checked $(LAZILY) -run '$(SLOW_RACED)' -timeout 10m ./node ./proxy

# Tests that measure allocations or load the whole Go tree skip themselves here: they look at -short
# and at the race detector's build tag. With the tag checked, the engine checks every handle and
# overwrites freed memory.
.PHONY: race
race: WHOLE := 1
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
	$(RACED) $(LAZILY) -run '$(HALF)' -skip $(call later,$(SLOW_RACED)) ./node
raced-second: raced-built
	$(RACED) $(LAZILY) -skip $(call later,$(SLOW_RACED),$(HALF)) ./node
raced-others: raced-built
	$(RACED) $(LAZILY) -skip $(call later,$(SLOW_RACED)) $$($(CONCURRENT) | grep -vE '/node$$|/cmd/$(if $(WHOLE),,|/node/engine$$|$(POINTERS))')
	$(if $(WHOLE),,$(RACED) $(LAZILY) -run "$$($(call tests_of,$$(grep -lE '$(TOGETHER)' node/engine/*_test.go)))" ./node/engine)
	$(if $(WHOLE),$(RACED) ./cmd/...)

.PHONY: raced-clusters raced-chaos raced-libraries
raced-clusters:
	$(RACED) $(if $(WHOLE),,-run '$(RACED_CLUSTERS)') ./test/cluster
raced-chaos:
	$(RACED) $(if $(WHOLE),,-run '$(RACED_FAULTS)') ./test/chaos $(if $(WHOLE),./test/differential)
raced-libraries:
	$(RACED) ./test/clients

# Tests of whole clusters without the race detector. With BUSY members wait for a silent node as long as they do under
# it: so much else runs that a node may get no processor for 250 ms.
BUSY = -harness.busy
.PHONY: libraries clusters chaos
libraries:
	go test -vet=off -timeout 15m ./test/clients $(BUSY)
clusters:
	go test -vet=off -skip '$(RACED_CLUSTERS)' -timeout 15m ./test/cluster $(BUSY)
	go test -vet=off -p 1 -timeout 10m ./test/differential ./test/soak $(BUSY)

# What faults cost the clients. The tests that the race detector shortens or skips measure more than the others of
# test/chaos, and run in `measured`, but for the upgrades.
chaos:
	go test -vet=off -skip "$$($(call unraced,test/chaos/*_test.go))|"'$(RACED_FAULTS)' -timeout 10m ./test/chaos $(BUSY)
	go test -vet=off -run '^TestUpgrade' -skip $(call later,$(LATER_UPGRADES)) -timeout 10m ./test/chaos $(BUSY)

# What a node's death or a cut costs the clients: nothing else runs. CHECKED_FOR has time for most kinds of faults;
# `make check` runs for longer.
CHECKED_FOR = $(if $(WHOLE),40s,25s)
.PHONY: measured
measured:
	go test -vet=off -run "$$($(call unraced,test/chaos/*_test.go))" -skip '^TestUpgrade' -timeout 10m ./test/chaos -check.time $(CHECKED_FOR)
	go test -vet=off -skip $(call later,$(LATER_SCENARIOS)) -timeout 10m ./test/scenarios

# Compiles the commits from which tests upgrade. Without this the stage of `chaos` would wait for it.
.PHONY: earlier
earlier:
	go test -vet=off -p 1 -run Upgrade -skip $(call later,$(LATER_UPGRADES)) -timeout 40m ./test/cluster ./test/chaos -harness.build

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
	go test -vet=off -tags checked $(LAZILY) -run '^Test(TimeLaw|LockTimes)' -skip $(call later,$(LATER_LAWS)) -timeout 30m ./node

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
