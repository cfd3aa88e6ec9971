package clients

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/test/harness"
)

// programTimeout bounds the run of a program, including a restart of the proxy.
const programTimeout = 2 * time.Minute

// program is a program that clients/install has made ready. clients/README.md describes its output
// and its steps.
type program struct {
	name, language string
	command        string // the proxy's address becomes its last argument
	steps          []string
}

// severalSlots lists the programs whose transactions have keys of several slots, which a proxy
// executes only with --multi relaxed.
var severalSlots = []string{"Django's cache"}

// ofSentinel lists the programs that are configured for Redis Sentinel.
var ofSentinel = []string{"redis-py Sentinel"}

// movers lists the programs whose library moves to another proxy when theirs announces that it closes,
// one for each language. A proxy announces that if another one is alive, and then serves for ten seconds
// more. The other programs have one proxy.
var movers = []string{"go-redis", "redis-py", "node-redis", "Lettuce"}

// clientSteps is the scenario of all client libraries.
var clientSteps = []string{
	"connect", "get-or-set", "many", "delete", "scan", "rate-limit", "lock", "pipeline",
	"hash", "set", "sorted-set", "list", "geo", "reconnect",
}

// streamSteps is what consumers of streams do.
var streamSteps = []string{"create", "consume", "claim", "info", "trim", "reconnect"}

var programs = []program{
	{"go-redis", "Go", "bin/clients/go go-redis", clientSteps},
	{"rueidis", "Go", "bin/clients/go rueidis", clientSteps},
	{"redigo", "Go", "bin/clients/go redigo", clientSteps},
	{"radix", "Go", "bin/clients/go radix", clientSteps},
	{"redsync", "Go", "bin/clients/go redsync", []string{"lock", "reconnect"}},
	{"redislock", "Go", "bin/clients/go redislock", []string{"lock", "reconnect"}},
	{"redis_rate", "Go", "bin/clients/go redis_rate", []string{"rate-limit", "reconnect"}},
	{"asynq", "Go", "bin/clients/go asynq", []string{"queue", "inspect", "reconnect", "stop"}},
	{"go-redis's streams", "Go", "bin/clients/go go-redis-streams", streamSteps},
	{"redis-py", "Python", "bin/clients/python/bin/python -B test/clients/python/redis_sync.py", clientSteps},
	{"redis-py asyncio", "Python", "bin/clients/python/bin/python -B test/clients/python/redis_asyncio.py", clientSteps},
	{"redis-py Sentinel", "Python", "bin/clients/python/bin/python -B test/clients/python/redis_sentinel.py", clientSteps},
	{"redis-py's Lock", "Python", "bin/clients/python/bin/python -B test/clients/python/redis_lock.py",
		[]string{"lock", "reconnect"}},
	{"redis-py's streams", "Python", "bin/clients/python/bin/python -B test/clients/python/redis_streams.py", streamSteps},
	{"Django's cache", "Python", "bin/clients/python/bin/python -B test/clients/python/django_cache.py",
		[]string{"get-or-set", "many", "delete", "rate-limit", "reconnect", "clear"}},
	{"node-redis", "Node", "node bin/clients/node/node_redis.js", clientSteps},
	{"ioredis", "Node", "node bin/clients/node/ioredis.js", clientSteps},
	{"connect-redis", "Node", "node bin/clients/node/connect_redis.js",
		[]string{"session", "list", "reconnect", "clear"}},
	{"Jedis", "Java", "java -cp bin/clients/java:bin/clients/java/lib/* Main jedis", clientSteps},
	{"Lettuce", "Java", "java -cp bin/clients/java:bin/clients/java/lib/* Main lettuce", clientSteps},
	{"Spring Data Redis cache", "Java", "java -cp bin/clients/java:bin/clients/java/lib/* Main spring-cache",
		[]string{"get-or-set", "put", "evict", "reconnect", "clear"}},
	{"redis-rs", "Rust", "bin/clients/rust/debug/clients", clientSteps},
	{"hiredis", "C", "bin/clients/hiredis", clientSteps},
	{"redis-cli", "tools", "test/clients/tools/redis-cli", clientSteps},
	{"redis-benchmark", "tools", "test/clients/tools/redis-benchmark", []string{"run", "reconnect"}},
}

// TestClientMatrix runs every client library and framework, in its own language and with its
// defaults, through a proxy that restarts under it. The test skips, by name, every program that
// `make clients` has not made ready. If MATRIX_TABLE is a file name, it writes a table of the
// results there.
func TestClientMatrix(t *testing.T) {
	if testing.Short() {
		t.Skip("takes most of a minute; go-redis, redigo and rueidis have a test of their own")
	}
	harness.SkipUnderRace(t)
	t.Parallel()
	c := harness.StartCluster(t, 3, 2)
	strict, relaxed := c.Proxy(0), c.Proxy(1)
	relaxed.Term(harness.ReadyTimeout)
	sentinel := harness.FreeAddr(t)
	relaxed.Flags = append(relaxed.Flags, "--multi", "relaxed", "--sentinel-listen", sentinel)
	relaxed.Start()
	harness.AwaitLevel(t, strict.Addr)
	run := func(proxy *harness.Member) {
		if !proxy.Running() {
			proxy.Start()
		}
	}
	var rows []string
	for _, p := range programs {
		result, version := "skipped", "-"
		t.Run(p.name, func(t *testing.T) {
			ready := filepath.Join("..", "..", "bin", "clients", "ready", strings.ToLower(p.language))
			if _, err := os.Stat(ready); err != nil {
				t.Skipf("%s is not ready (make clients)", p.language)
			}
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
			version = p.run(t, proxy, addr)
			result = "passes"
			if t.Failed() {
				result = "**fails**"
			}
		})
		rows = append(rows, fmt.Sprintf("| %s | %s | %s | %s |\n", p.name, version, p.language, result))
	}
	writeTable(t, rows)
}

func writeTable(t *testing.T, rows []string) {
	path := os.Getenv("MATRIX_TABLE")
	if path == "" {
		return
	}
	text := "| client | version | language | result |\n|---|---|---|---|\n" + strings.Join(rows, "")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Error(err)
	}
}

// run runs the program to its end, and returns the version that it reports. addr is where it finds the proxy.
func (p program) run(t *testing.T, proxy *harness.Member, addr string) (version string) {
	ctx, cancel := context.WithTimeout(t.Context(), programTimeout)
	defer cancel()
	words := append(strings.Fields(p.command), addr)
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Dir = harness.Root(t)
	harness.EndWithUs(cmd)
	var problems bytes.Buffer
	cmd.Stderr = &problems
	stdin, _ := cmd.StdinPipe()
	stdout, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var passed []string
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		switch word {
		case "version":
			version = rest
		case "ok":
			passed = append(passed, rest)
		case "restart":
			proxy.Term(harness.ReadyTimeout)
			proxy.Start()
			fmt.Fprintln(stdin)
		case "kill":
			proxy.Kill()
			proxy.Start()
			fmt.Fprintln(stdin)
		default:
			t.Error(lines.Text())
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the program ends with %v", err)
	}
	if !slices.Equal(passed, p.steps) {
		t.Errorf("steps %v pass, want %v\n%.4000s", passed, p.steps, problems.String())
	}
	return version
}
