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

// clientSteps is the scenario of all client libraries.
var clientSteps = []string{
	"connect", "get-or-set", "many", "delete", "scan", "rate-limit", "lock", "pipeline",
	"hash", "set", "sorted-set", "list", "geo", "reconnect",
}

var programs = []program{
	{"go-redis", "Go", "bin/clients/go go-redis", clientSteps},
	{"rueidis", "Go", "bin/clients/go rueidis", clientSteps},
	{"redigo", "Go", "bin/clients/go redigo", clientSteps},
	{"radix", "Go", "bin/clients/go radix", clientSteps},
	{"redsync", "Go", "bin/clients/go redsync", []string{"lock", "reconnect"}},
	{"redislock", "Go", "bin/clients/go redislock", []string{"lock", "reconnect"}},
	{"redis_rate", "Go", "bin/clients/go redis_rate", []string{"rate-limit", "reconnect"}},
	{"asynq", "Go", "bin/clients/go asynq", []string{"queue", "inspect", "reconnect", "stop"}},
	{"redis-py", "Python", "bin/clients/python/bin/python -B test/clients/python/redis_sync.py", clientSteps},
	{"redis-py asyncio", "Python", "bin/clients/python/bin/python -B test/clients/python/redis_asyncio.py", clientSteps},
	{"redis-py's Lock", "Python", "bin/clients/python/bin/python -B test/clients/python/redis_lock.py",
		[]string{"lock", "reconnect"}},
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
	relaxed.Flags = append(relaxed.Flags, "--multi", "relaxed")
	relaxed.Start()
	harness.AwaitLevel(t, strict.Addr)
	var rows []string
	for _, p := range programs {
		result, version := "skipped", "-"
		t.Run(p.name, func(t *testing.T) {
			ready := filepath.Join("..", "..", "bin", "clients", "ready", strings.ToLower(p.language))
			if _, err := os.Stat(ready); err != nil {
				t.Skipf("%s is not ready (make clients)", p.language)
			}
			proxy := strict
			if slices.Contains(severalSlots, p.name) {
				proxy = relaxed
			}
			version = p.run(t, proxy)
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

// run runs the program to its end, and returns the version that it reports.
func (p program) run(t *testing.T, proxy *harness.Member) (version string) {
	ctx, cancel := context.WithTimeout(t.Context(), programTimeout)
	defer cancel()
	words := append(strings.Fields(p.command), proxy.Addr)
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
