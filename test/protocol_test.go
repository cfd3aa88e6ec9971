package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Conversations are text files: prose, and blocks of requests with their replies
// as redis-cli shows them. The notation is that of package node's testdata, whose
// files are replayed here too:
//
//	> SET k v          a request; the lines below, up to an empty line or the next request, are its reply
//	sorted> KEYS *     elements of the reply in any order
//	until> GET k       asked again until the reply is the expected one
//	quiet> HELLO 3     any reply
//	raw> "*1\r\n$x"    bytes in Go's quoting, and the replies to them; "(closed)" is the end of the connection
//	wire> GET k        a request whose reply is shown as bytes in Go's quoting
//
// Where Redis answers otherwise, all three of these are the reply:
//
//	dunlin: ...
//	redis: ...
//	because: ...
type exchange struct {
	line          int
	mode, request string
	dunlin, redis string
	because       string
}

var requestLine = regexp.MustCompile(`^(|sorted|until|quiet|raw|wire)> (.*)$`)

func readConversation(t *testing.T, file string) (all []exchange) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var current *exchange
	for i, line := range strings.Split(string(content), "\n") {
		if m := requestLine.FindStringSubmatch(line); m != nil {
			all = append(all, exchange{line: i + 1, mode: m[1], request: m[2]})
			current = &all[len(all)-1]
		} else if line == "" {
			current = nil // what follows is prose
		} else if current != nil {
			current.addReply(line)
		}
	}
	for _, x := range all {
		if (x.dunlin != x.redis) != (x.because != "") {
			t.Fatalf("%s:%d: a difference needs its reason, and only a difference", file, x.line)
		}
	}
	return all
}

func (x *exchange) addReply(line string) {
	add := func(to *string, line string) { *to = strings.TrimPrefix(*to+"\n"+line, "\n") }
	if only, ok := strings.CutPrefix(line, "dunlin: "); ok {
		add(&x.dunlin, only)
	} else if only, ok := strings.CutPrefix(line, "redis: "); ok {
		add(&x.redis, only)
	} else if reason, ok := strings.CutPrefix(line, "because: "); ok {
		x.because = reason
	} else {
		add(&x.dunlin, line)
		add(&x.redis, line)
	}
}

// replay holds a conversation with the server at addr. After a closed connection
// it goes on with a new one.
func replay(t *testing.T, file, addr string, isRedis bool) {
	w := dialWire(t, addr)
	w.want("FLUSHALL", "OK")
	for _, x := range readConversation(t, file) {
		want := x.dunlin
		if isRedis {
			want = x.redis
		}
		got := x.say(w, want)
		switch x.mode {
		case "quiet":
			continue
		case "sorted":
			got, want = sorted(got), sorted(want)
		case "until":
			eventually(t, replyTimeout, x.request+" answers "+want, func() bool { return x.say(w, want) == want })
			continue
		}
		if got != want {
			t.Errorf("%s:%d: %s answers\n%s\nwant\n%s", file, x.line, x.request, got, want)
		}
		if strings.HasSuffix(got, "(closed)") {
			w = dialWire(t, addr)
		}
	}
}

// say sends the request and returns its reply as the file would show it.
func (x *exchange) say(w *wire, want string) string {
	w.t.Helper()
	switch x.mode {
	case "wire":
		return strconv.Quote(string(w.do(x.request)))
	case "raw":
		bytes, err := strconv.Unquote(x.request)
		if err != nil {
			w.t.Fatalf("line %d: cannot unquote %s: %v", x.line, x.request, err)
		}
		w.send([]byte(bytes))
		var replies []string
		for range strings.Count(want, "\n") + 1 { // one-line replies only
			replies = append(replies, text(w.next()))
		}
		return strings.Join(replies, "\n")
	default:
		return text(w.do(x.request))
	}
}

var elementNumbers = regexp.MustCompile(`(?m)^( *\d+\) )+`)

func sorted(reply string) string {
	lines := strings.Split(elementNumbers.ReplaceAllString(reply, ""), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func conversations(t *testing.T, patterns ...string) (files []string) {
	t.Helper()
	for _, p := range patterns {
		found, err := filepath.Glob(p)
		if err != nil || len(found) == 0 {
			t.Fatalf("no conversations in %s: %v", p, err)
		}
		files = append(files, found...)
	}
	return files
}

// TestConversations: through a proxy over three nodes, everything is as if a
// single server answered; what is promised on a node holds through a proxy too.
func TestConversations(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3, 1)
	for _, file := range conversations(t, "testdata/*.txt", "../node/testdata/*.txt") {
		t.Run(filepath.Base(file), func(t *testing.T) { replay(t, file, c.proxy(0).addr, false) })
	}
}

// TestConversationsWithRedis proves the expectations of this package's files;
// package node proves its own.
func TestConversationsWithRedis(t *testing.T) {
	t.Parallel()
	addr := startRedis(t)
	for _, file := range conversations(t, "testdata/*.txt") {
		t.Run(filepath.Base(file), func(t *testing.T) { replay(t, file, addr, true) })
	}
}

// startRedis starts a real redis-server that ends with the test.
func startRedis(t *testing.T) (addr string) {
	t.Helper()
	needTool(t, "redis-server")
	addr = freeAddr(t)
	_, port, _ := strings.Cut(addr, ":")
	cmd := exec.Command("redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", t.TempDir())
	endWithUs(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	eventually(t, readyTimeout, "redis-server listens", func() bool { return !isFree(addr) })
	return addr
}
