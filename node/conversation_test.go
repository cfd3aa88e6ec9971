package node

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Conversations are files of testdata: prose, and blocks of requests with their
// replies as redis-cli prints them. A block ends with an empty line.
//
//	> SET k v          a request; the lines below it are the reply
//	OK
//
//	sorted> KEYS *     the reply's lines may come in any order
//	until> GET k       asked again until the reply is as expected
//	raw> "*1\r\n$x"    bytes as a Go string; "(closed)" stands for the end of the connection
//	quiet> HELLO 3     the reply does not matter
//
// Where Redis answers otherwise, both replies are there, and why:
//
//	> MSETNX a 1 b 2
//	dunlin: (error) CROSSSLOT Keys in request don't hash to the same slot
//	redis: (integer) 1
//	because: ...
type exchange struct {
	line          int
	mode, request string
	dunlin, redis string
	because       string
}

func readConversation(t *testing.T, file string) (all []exchange) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	for i := 0; i < len(lines); i++ {
		mode, request, ok := strings.Cut(lines[i], "> ")
		if !ok || !slices.Contains([]string{"", "sorted", "until", "raw", "quiet"}, mode) {
			continue // prose
		}
		x := exchange{line: i + 1, mode: mode, request: request}
		var reply []string
		for i+1 < len(lines) && lines[i+1] != "" && !isRequest(lines[i+1]) {
			i++
			reply = append(reply, lines[i])
		}
		x.setReply(reply)
		if (x.dunlin != x.redis) != (x.because != "") {
			t.Fatalf("%s:%d: a difference needs its reason, and only a difference", file, x.line)
		}
		all = append(all, x)
	}
	return all
}

func isRequest(line string) bool {
	mode, _, ok := strings.Cut(line, "> ")
	return ok && !strings.Contains(mode, " ") && !strings.Contains(mode, `"`) && !strings.Contains(mode, "(")
}

func (x *exchange) setReply(lines []string) {
	var common []string
	for _, line := range lines {
		if rest, ok := strings.CutPrefix(line, "dunlin: "); ok {
			x.dunlin = rest
		} else if rest, ok := strings.CutPrefix(line, "redis: "); ok {
			x.redis = rest
		} else if rest, ok := strings.CutPrefix(line, "because: "); ok {
			x.because = rest
		} else {
			common = append(common, line)
		}
	}
	if x.because == "" {
		x.dunlin = strings.Join(common, "\n")
		x.redis = x.dunlin
	}
}

// play replays a conversation. It opens a new connection when one was closed.
func play(t *testing.T, file, addr string, real bool) {
	c := dial(t, addr)
	c.do("FLUSHALL")
	for _, x := range readConversation(t, file) {
		want := x.dunlin
		if real {
			want = x.redis
		}
		got := x.run(c)
		for deadline := time.Now().Add(replyTimeout); x.mode == "until" && got != want && time.Now().Before(deadline); {
			time.Sleep(2 * time.Millisecond)
			got = x.run(c)
		}
		if x.mode == "sorted" {
			got, want = sortLines(got), sortLines(want)
		}
		if got != want && x.mode != "quiet" {
			t.Errorf("%s:%d: %s\ngot\n%s\nwant\n%s", file, x.line, x.request, got, want)
		}
		if strings.HasSuffix(got, "(closed)") {
			c = dial(t, addr)
		}
	}
}

func (x *exchange) run(c *client) string {
	if x.mode != "raw" {
		return c.do(x.request)
	}
	bytes, err := strconv.Unquote(x.request)
	if err != nil {
		c.t.Fatalf("line %d: cannot unquote %s: %v", x.line, x.request, err)
	}
	c.sendRaw([]byte(bytes))
	// As many replies as are expected.
	replies := make([]string, strings.Count(x.dunlin, "\n")+1)
	for i := range replies {
		replies[i] = c.next()
	}
	return strings.Join(replies, "\n")
}

// elementNumber is what precedes an element, of nested arrays as well.
var elementNumber = regexp.MustCompile(`^( *\d+\) )+`)

// sortLines sorts the elements of an array, without their numbers.
func sortLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = elementNumber.ReplaceAllString(line, "")
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func conversations(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no conversations: %v", err)
	}
	return files
}

func TestConversations(t *testing.T) {
	n := startNode(t)
	for _, file := range conversations(t) {
		t.Run(filepath.Base(file), func(t *testing.T) { play(t, file, n.Addr(), false) })
	}
}

// TestConversationsWithRedis proves the expectations against the original.
func TestConversationsWithRedis(t *testing.T) {
	addr := startRedis(t)
	for _, file := range conversations(t) {
		t.Run(filepath.Base(file), func(t *testing.T) { play(t, file, addr, true) })
	}
}

// startRedis starts a real redis-server that ends with the test.
func startRedis(t testing.TB) (addr string) {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("no redis-server on this machine: expectations are not compared with the original")
	}
	port := freePort(t)
	cmd := exec.Command(path, "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
		"--daemonize", "no", "--dir", t.TempDir(), "--enable-debug-command", "yes")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	addr = net.JoinHostPort("127.0.0.1", port)
	eventually(t, "redis-server answers", func() bool {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return false
		}
		defer c.Close()
		fmt.Fprint(c, "PING\r\n")
		buf := make([]byte, 7)
		c.SetReadDeadline(time.Now().Add(time.Second))
		n, _ := c.Read(buf)
		return string(buf[:n]) == "+PONG\r\n"
	})
	return addr
}

func freePort(t testing.TB) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	return port
}
