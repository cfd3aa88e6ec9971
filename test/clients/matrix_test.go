package clients

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dunlin-cache/dunlin/test/harness"
)

// programTimeout bounds the run of a program. Applications wait for each other, and for what happens to the cluster.
const programTimeout = 5 * time.Minute

// program is a program that clients/install has made ready. clients/README.md describes its output
// and its steps.
type program struct {
	name, language string
	command        string // the proxy's address becomes its last argument
	steps          []string
}

// severalSlots lists the programs whose transactions, or a RENAME, have keys of several slots, which a proxy
// executes only with --multi relaxed, or --cross-slot relaxed.
var severalSlots = []string{"Django's cache", "django-redis", "Spring Session, Bucket4j", "Spring Data repositories", "Sidekiq", "Laravel, phpredis"}

// pinned has the programs that work in a pinned database, which is part of their URL: there, transactions and scripts
// take any keys.
var pinned = map[string]string{
	"BullMQ without a tag": "/8", "RQ": "/9", "Celery": "/10", "Dramatiq": "/11", "Flask-Limiter": "/12",
	"huey, channels_redis, aiocache": "/13", "centrifuge": "/14", "Laravel, predis": "/15",
}

// fetchedAlone lists the first words of programs that are left out if their package cannot be fetched, and the
// others of their language are not.
var fetchedAlone = []string{"RQ", "Celery", "Dramatiq", "Flask-Limiter", "django-redis", "huey"}

// ofSentinel lists the programs that are configured for Redis Sentinel.
var ofSentinel = []string{"redis-py Sentinel"}

// movers lists the programs whose library moves to another proxy when theirs announces that it closes,
// one for each language. A proxy announces that if another one is alive, and then serves for ten seconds
// more. The other programs have one proxy.
var movers = []string{"go-redis", "redis-py", "node-redis", "Lettuce"}

// python and java begin the commands of their programs. Those of Java are short: the second compiler takes as long as
// all else.
const (
	ruby   = "ruby test/clients/ruby/"
	php    = "php test/clients/php/"
	python = "bin/clients/python/bin/python -B test/clients/python/"
	java   = "java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -cp bin/clients/java:bin/clients/java/lib/* Main "
)

// clientSteps is the scenario of all client libraries. more names the steps in it that not all of them have.
func clientSteps(more ...string) (steps []string) {
	optional := []string{"transaction", "script", "shard-publish", "cluster-publish", "tracking"}
	for _, step := range []string{
		"connect", "get-or-set", "many", "delete", "scan", "rate-limit", "lock", "pipeline",
		"hash", "set", "sorted-set", "list", "geo",
		"transaction", "script", "publish", "shard-publish", "cluster-publish", "blocking", "tracking", "reconnect",
	} {
		if !slices.Contains(optional, step) || slices.Contains(more, step) {
			steps = append(steps, step)
		}
	}
	return steps
}

// streamSteps is what consumers of streams do.
var streamSteps = []string{"create", "consume", "claim", "info", "trim", "reconnect"}

// groupSteps is what consumers of streams do while nodes are replaced.
var groupSteps = []string{"create", "consume", "claim", "replace"}

// listeningSteps is what clients do that read streams, listen to channels and call a script.
var listeningSteps = []string{"create", "consume", "claim", "publish", "script", "replace"}

var programs = []program{
	{"go-redis", "Go", "bin/clients/go go-redis", clientSteps("shard-publish", "tracking")},
	{"rueidis", "Go", "bin/clients/go rueidis", clientSteps("shard-publish", "tracking")},
	{"redigo", "Go", "bin/clients/go redigo", clientSteps()},
	{"radix", "Go", "bin/clients/go radix", clientSteps()},
	{"go-redis/cache", "Go", "bin/clients/go go-redis-cache",
		[]string{"get-or-set", "once", "local", "delete", "reconnect"}},
	{"go-redis's streams", "Go", "bin/clients/go go-redis-streams", streamSteps},
	{"redis-py", "Python", python + "redis_sync.py", clientSteps("shard-publish", "cluster-publish", "tracking")},
	{"redis-py asyncio", "Python", python + "redis_asyncio.py", clientSteps("shard-publish")},
	{"redis-py Sentinel", "Python", python + "redis_sentinel.py", clientSteps("shard-publish")},
	{"redis-py's Lock", "Python", python + "redis_lock.py", []string{"lock", "reconnect"}},
	{"redis-py's streams", "Python", python + "redis_streams.py", streamSteps},
	{"Django's cache", "Python", python + "django_cache.py",
		[]string{"get-or-set", "many", "delete", "rate-limit", "reconnect", "clear"}},
	{"node-redis", "Node", "node bin/clients/node/node_redis.js", clientSteps("shard-publish", "cluster-publish", "tracking")},
	{"ioredis", "Node", "node bin/clients/node/ioredis.js", clientSteps("shard-publish", "cluster-publish")},
	{"connect-redis", "Node", "node bin/clients/node/connect_redis.js",
		[]string{"session", "list", "reconnect", "clear"}},
	{"Jedis", "Java", java + "jedis", clientSteps("cluster-publish", "tracking")},
	{"Lettuce", "Java", java + "lettuce", clientSteps("shard-publish", "cluster-publish", "tracking")},
	{"Spring Data Redis cache", "Java", java + "spring-cache",
		[]string{"get-or-set", "put", "evict", "reconnect", "clear"}},
	{"redis-rb", "Ruby", ruby + "redis_rb.rb", clientSteps("transaction", "script")},
	{"phpredis", "PHP", php + "phpredis.php", clientSteps("transaction", "script")},
	{"predis", "PHP", php + "predis.php", clientSteps("transaction", "script")},
	{"redis-rs", "Rust", "bin/clients/rust/debug/clients", clientSteps("tracking")},
	{"hiredis", "C", "bin/clients/hiredis", clientSteps("shard-publish", "tracking")},
	{"redis-cli", "tools", "test/clients/tools/redis-cli", clientSteps("shard-publish", "tracking")},
	{"redis-benchmark", "tools", "test/clients/tools/redis-benchmark", []string{"run", "reconnect"}},
}

// TestClientMatrix runs every client library and framework, in its own language and with its
// defaults, through a proxy that restarts under it, or while all nodes are replaced, one after another.
// The test skips, by name, every program that `make clients` has not made ready. If MATRIX_TABLE
// is a file name, it writes a table of the results there.
func TestClientMatrix(t *testing.T) {
	if testing.Short() {
		t.Skip("takes most of a minute; go-redis, redigo and rueidis have a test of their own")
	}
	harness.SkipUnderRace(t)
	t.Parallel()
	c, sentinel := startForPrograms(t)
	strict, relaxed := c.Proxy(0), c.Proxy(1)
	run := func(proxy *harness.Member) {
		if !proxy.Running() {
			proxy.Start()
		}
	}
	var rows []string
	for _, p := range programs {
		o := outcome{}
		passes := t.Run(p.name, func(t *testing.T) {
			p.skipUnlessReady(t)
			proxy, addr, other := strict, strict.Addr, relaxed
			switch {
			case slices.Contains(severalSlots, p.name):
				proxy, addr, other = relaxed, relaxed.Addr, strict
			case slices.Contains(ofSentinel, p.name):
				proxy, addr, other = relaxed, sentinel, strict
			}
			run(proxy)
			if slices.Contains(movers, p.name) {
				run(other)
			} else if other.Running() {
				other.Term(harness.ReadyTimeout)
			}
			requests := requestsFor(proxy)
			requests["node"] = func(tell func(string)) { tell(c.Node(0).Addr) }
			o = p.run(t, addr, requests)
			o.judge(t, p)
		})
		rows = append(rows, o.row(p, passes))
	}
	run(strict)
	run(relaxed)
	begun := time.Now()
	outcomes := runTogether(t, phasesOf(c), addrsIn(c), allOf)
	repeatIfGivenUp(t, c, begun, outcomes)
	for i, p := range applications {
		passes := t.Run(p.name, func(t *testing.T) {
			p.skipUnlessReady(t)
			outcomes[i].judge(t, p)
		})
		rows = append(rows, outcomes[i].row(p, passes))
	}
	writeTable(t, rows)
}

// startForPrograms starts three nodes and two proxies, the second of them for programs with keys of
// several slots, and for Sentinel's clients. The proxies wait for a silent node for as long as a flag
// allows, as docs/operations.md advises where nodes share a busy machine. With the usual 250 ms, a
// node that gets no processor among two dozen programs loses its pipes, and a planned replacement
// seems to have broken them.
func startForPrograms(t *testing.T) (c *harness.Cluster, sentinel string) {
	t.Helper()
	c = harness.StartClusterWith(t, harness.StartOptions{
		Nodes: 3, Proxies: 2, NodeFlags: []string{"--pinned-databases", "8-15"}, Env: []string{"DUNLIN_NODE_TIMEOUT=5s"},
	})
	relaxed := c.Proxy(1)
	relaxed.Term(harness.ReadyTimeout)
	sentinel = harness.FreeAddr(t)
	relaxed.Flags = append(relaxed.Flags, "--multi", "relaxed", "--cross-slot", "relaxed", "--sentinel-listen", sentinel)
	relaxed.Start()
	harness.AwaitLevel(t, c.Proxy(0).Addr)
	return c, sentinel
}

// addrsIn returns where each application finds its proxy.
func addrsIn(c *harness.Cluster) func(program) string {
	return func(p program) string {
		if slices.Contains(severalSlots, p.name) {
			return c.Proxy(1).Addr
		}
		return c.Proxy(0).Addr + pinned[p.name]
	}
}

func writeTable(t *testing.T, rows []string) {
	path := os.Getenv("MATRIX_TABLE")
	if path == "" {
		return
	}
	text := "| client | version | language | result |\n|---|---|---|---|\n" + strings.Join(rows, "")
	file, err := harness.Output(path, unix.O_TRUNC)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString(text); err != nil {
		t.Error(err)
	}
}

// ready reports whether `make clients` has made the program ready.
func (p program) ready() bool {
	needs := []string{p.language}
	if word, _, _ := strings.Cut(strings.ReplaceAll(p.name, ",", " "), " "); slices.Contains(fetchedAlone, word) {
		needs = append(needs, word)
	}
	return !slices.ContainsFunc(needs, func(name string) bool {
		_, err := os.Stat(filepath.Join("..", "..", "bin", "clients", "ready", strings.ToLower(name)))
		return err != nil
	})
}

// runs reports whether the program is ready and wanted.
func (p program) runs() bool {
	return p.ready() && regexp.MustCompile(*only).MatchString(p.name)
}

func (p program) skipUnlessReady(t *testing.T) {
	if !p.runs() {
		t.Skipf("%s of %s is not ready (make clients), or not wanted", p.name, p.language)
	}
}

// request is what a word of a program asks for. Each tell writes a line to the program's input.
type request func(tell func(words string))

// requestsFor returns the words of a program that has a proxy for itself.
func requestsFor(proxy *harness.Member) map[string]request {
	return map[string]request{
		"restart": func(tell func(string)) {
			proxy.Term(harness.ReadyTimeout)
			proxy.Start()
			tell("")
		},
		"kill": func(tell func(string)) {
			proxy.Kill()
			proxy.Start()
			tell("")
		},
	}
}

// outcome is what a program has reported.
type outcome struct {
	version       string // "" if the program did not run
	took, busy    time.Duration
	passed, wrong []string
	counts        []string // what a crash has done
	problems      bytes.Buffer
}

// run runs the program to its end. addr is where it finds the proxy.
func (p program) run(t *testing.T, addr string, requests map[string]request) (o outcome) {
	ctx, cancel := context.WithTimeout(t.Context(), programTimeout)
	defer cancel()
	defer func(begin time.Time) { o.took = time.Since(begin) }(time.Now())
	words := append(strings.Fields(p.command), addr)
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Dir = harness.Root(t)
	harness.EndWithUs(cmd)
	cmd.Stderr = &o.problems
	stdin, _ := cmd.StdinPipe()
	stdout, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		o.wrong = append(o.wrong, err.Error())
		return o
	}
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		do, asks := requests[word]
		switch {
		case asks:
			do(func(words string) { fmt.Fprintln(stdin, words) })
		case word == "version":
			o.version = rest
		case word == "count":
			o.counts = append(o.counts, rest)
		case word == "ok":
			o.passed = append(o.passed, rest)
		default:
			o.wrong = append(o.wrong, lines.Text())
		}
	}
	err := cmd.Wait()
	o.busy = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if err != nil {
		o.wrong = append(o.wrong, fmt.Sprintf("the program ends with %v", err))
	}
	return o
}

// passes reports whether the program has passed all of its steps, and has reported nothing else.
func (o *outcome) passes(p program) bool { return len(o.wrong) == 0 && slices.Equal(o.passed, p.steps) }

// judge fails the test unless the program passes.
func (o *outcome) judge(t *testing.T, p program) {
	t.Logf("%.1f s, and %.1f s of processors", o.took.Seconds(), o.busy.Seconds())
	for _, line := range o.counts {
		t.Log(line)
	}
	for _, line := range o.wrong {
		t.Error(line)
	}
	if !slices.Equal(o.passed, p.steps) {
		t.Errorf("steps %v pass, want %v\n%.4000s", o.passed, p.steps, o.problems.String())
	}
}

// row returns the program's line of the table.
func (o *outcome) row(p program, passes bool) string {
	version, result := o.version, "passes"
	switch {
	case !passes:
		result = "**fails**"
	case version == "":
		version, result = "-", "skipped"
	}
	return fmt.Sprintf("| %s | %s | %s | %s |\n", p.name, version, p.language, result)
}
