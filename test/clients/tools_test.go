package clients

import (
	"bytes"
	"fmt"
	"net"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/test/harness"
)

// TestRedisCLI runs commands in redis-cli against a proxy, as a person would.
func TestRedisCLI(t *testing.T) {
	t.Parallel()
	needTool(t, "redis-cli")
	c := harness.StartCluster(t, 3, 1)
	proxy, node := c.Proxy(0).Addr, c.Node(0).Addr
	t.Run("proxy", func(t *testing.T) { talkToCLI(t, cli{addr: proxy}) })
	t.Run("proxy RESP3", func(t *testing.T) { talkToCLI(t, cli{addr: proxy, flags: []string{"-3"}}) })
	t.Run("proxy cluster mode", func(t *testing.T) { talkToCLI(t, cli{addr: proxy, flags: []string{"-c"}}) })
	t.Run("node cluster mode", func(t *testing.T) {
		talkToCLI(t, cli{addr: node, flags: []string{"-c"}, redirected: true})
	})
	t.Run("large value", func(t *testing.T) { largeValue(t, proxy) })
	t.Run("MGET over nodes", func(t *testing.T) {
		p := cli{addr: proxy}
		p.want(t, "OK", "MSET", "a", "1", "b", "2", "c", "3", "d", "4")
		p.want(t, "4\n\n1\n2\n3", "MGET", "d", "missing", "a", "b", "c")
	})
	t.Run("HELLO 3", func(t *testing.T) {
		got := cli{addr: proxy}.run(t, nil, "HELLO", "3")
		for _, part := range []string{"server redis\n", "\nproto 3\n", "\nrole master\n"} {
			if !strings.Contains(got, part) {
				t.Errorf("HELLO 3 answers %q, without %q", got, part)
			}
		}
	})
	t.Run("node refers to owners", func(t *testing.T) {
		moved := regexp.MustCompile(`^MOVED \d+ 127\.0\.0\.1:\d+$`)
		here, elsewhere := 0, 0
		for i := range 12 {
			switch got := (cli{addr: node}).run(t, nil, "SET", fmt.Sprint("moved", i), "v"); {
			case got == "OK":
				here++
			case moved.MatchString(got):
				elsewhere++
			default:
				t.Fatalf("SET answers %q", got)
			}
		}
		if here == 0 || elsewhere == 0 {
			t.Errorf("of 12 keys %d belong to one of three nodes, %d to others", here, elsewhere)
		}
	})
}

func talkToCLI(t *testing.T, c cli) {
	c.want(t, "PONG", "PING")
	c.want(t, "OK", "SET", "greeting", "hello\r\nworld")
	c.want(t, "hello\r\nworld", "GET", "greeting")
	c.want(t, "", "GET", "nothing")
	c.want(t, "1", "DEL", "greeting")
	for i := range 8 { // keys on all nodes
		k := fmt.Sprint("cli", i)
		c.want(t, "OK", "SET", k, "v"+k)
		c.want(t, "v"+k, "GET", k)
		c.want(t, "1", "DEL", k)
	}
	c.want(t, "ERR wrong number of arguments for 'get' command", "GET")
	c.want(t, "ERR wrong number of arguments for 'set' command", "SET", "k")
	c.want(t, "ERR unknown command 'NOSUCH', with args beginning with: 'a' 'b' ", "NOSUCH", "a", "b")
	c.want(t, "ERR value is not an integer or out of range", "EXPIRE", "k", "soon")
}

// largeValue writes and reads 20 MB, as `redis-cli -x` does from a file.
func largeValue(t *testing.T, addr string) {
	value := bytes.Repeat([]byte("0123456789abcdef\r\n\x00\xff"), 1<<20)
	c := cli{addr: addr}
	if got := c.run(t, value, "-x", "SET", "large"); got != "OK" {
		t.Fatalf("SET of %d bytes answers %.100q", len(value), got)
	}
	c.want(t, fmt.Sprint(len(value)), "STRLEN", "large")
	got := c.run(t, nil, "--raw", "GET", "large")
	if got != string(value) {
		t.Errorf("the value came back with %d bytes, other than the %d that were stored", len(got), len(value))
	}
	c.want(t, "1", "DEL", "large")
}

// cli is redis-cli with an address.
type cli struct {
	addr       string
	flags      []string
	redirected bool // the output has lines about redirections
}

// run returns what redis-cli prints, without the last line end.
func (c cli) run(t *testing.T, stdin []byte, args ...string) string {
	t.Helper()
	host, port, _ := net.SplitHostPort(c.addr)
	cmd := exec.CommandContext(t.Context(), "redis-cli",
		append(append([]string{"-h", host, "-p", port}, c.flags...), args...)...)
	if stdin != nil {
		cmd.Stdin = bytes.NewReader(stdin)
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("redis-cli %q: %v\n%.1000s", args, err, out)
	}
	// After an error redis-cli prints an empty line.
	text := string(out)
	text = strings.TrimSuffix(text, "\n")
	if strings.HasPrefix(text, "ERR ") || strings.HasPrefix(text, "MOVED ") {
		text = strings.TrimSuffix(text, "\n")
	}
	return text
}

var redirection = regexp.MustCompile(`(?m)^-> Redirected to slot .*\n`)

func (c cli) want(t *testing.T, want string, args ...string) {
	t.Helper()
	got := c.run(t, nil, args...)
	if c.redirected {
		got = redirection.ReplaceAllString(got, "")
	}
	if got != want {
		t.Errorf("redis-cli %q prints %q, want %q", args, got, want)
	}
}

// TestRedisBenchmark runs redis-benchmark, the tool that most people try first.
func TestRedisBenchmark(t *testing.T) {
	t.Parallel()
	needTool(t, "redis-benchmark")
	harness.SkipUnderRace(t)
	c := harness.StartCluster(t, 3, 1)
	rates := regexp.MustCompile(`(?m)^(\w+)[^:\n]*: ([0-9.]+) requests per second`)
	for _, r := range []struct {
		name  string
		addr  string
		flags []string
		tests string
	}{
		{"proxy", c.Proxy(0).Addr, nil, "set,get,mset"},
		{"proxy, random keys", c.Proxy(0).Addr, []string{"-r", "10000"}, "set,get,mset"},
		{"proxy, RESP3", c.Proxy(0).Addr, []string{"-3", "-r", "10000"}, "set,get,mset"},
		{"cluster mode through a node", c.Node(0).Addr, []string{"--cluster", "-r", "10000"}, "set,get,mset"},
	} {
		t.Run(r.name, func(t *testing.T) {
			host, port, _ := net.SplitHostPort(r.addr)
			args := append([]string{"-h", host, "-p", port, "-t", r.tests, "-P", "16", "-q", "-n", "20000"}, r.flags...)
			out, err := exec.CommandContext(t.Context(), "redis-benchmark", args...).CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			text := strings.ReplaceAll(string(out), "\r", "\n") // the tool overwrites its progress
			found := rates.FindAllStringSubmatch(text, -1)
			if want := strings.Count(r.tests, ",") + 1; len(found) != want || strings.Contains(text, "rror") {
				t.Fatalf("%d results, want %d and no error:\n%s", len(found), want, text)
			}
			for _, f := range found {
				t.Logf("%s %s/s", f[1], f[2])
			}
		})
	}
}

func needTool(t *testing.T, name string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("%s is not installed", name)
	}
}
