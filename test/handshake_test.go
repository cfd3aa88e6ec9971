package test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// TestHandshakes replays the conversations of package session, which are about
// connections (HELLO, AUTH, CLIENT, COMMAND, CONFIG, CLUSTER), with a real proxy and a
// real node. That package proves them against a real redis-server. Lines are:
//
//	--- title     a new connection
//	> WORD "w 2"  a request; quoted words as in Go
//	< line        a line of the reply, exactly; a line feed is shown as \n
//	<~ regexp     a line that matches
//	<*            whatever else the reply has
//	= closed      the connection has ended
//	@password p   the server wants this password
func TestHandshakes(t *testing.T) {
	t.Parallel()
	open := startCluster(t, 2, 1)
	locked := startCluster(t, 2, 1, "--requirepass", "secret")
	for _, file := range conversations(t, "../internal/session/testdata/*.txt") {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		c := open
		if strings.Contains(string(content), "\n@password secret\n") {
			c = locked
		}
		for _, m := range []*member{c.node(0), c.proxy(0)} {
			t.Run(m.role+" "+filepath.Base(file), func(t *testing.T) { handshake(t, m, file, string(content)) })
		}
	}
}

// notHeld are conversations, by role and title, that go otherwise with real processes.
var notHeld = map[string]string{
	"proxy: Keys in a slot":               "a proxy has no keys; it refers to the nodes",
	"proxy: All or nothing":               "the nodes' parameters are set apart from a proxy's",
	"proxy: What Dunlin cannot be set to": "the same",
	"node: What Dunlin cannot be set to":  "its hook that fails is that of a test",
}

func handshake(t *testing.T, m *member, file, content string) {
	var (
		w     *wire
		begun = "the beginning"
		reply []string // lines that are not compared yet
		skip  bool     // up to the next connection
	)
	fail := func(line int, format string, args ...any) {
		t.Helper()
		t.Errorf("%s:%d, in %q: "+format, append([]any{file, line, begun}, args...)...)
		skip = true
	}
	for i, text := range strings.Split(content, "\n") {
		kind, rest, _ := strings.Cut(text, " ")
		if kind != "---" && (skip || w == nil) {
			continue
		}
		// Only lines of a reply may stand between a request and the end of its reply.
		if (kind == ">" || kind == "=" || kind == "---") && len(reply) > 0 && !skip {
			fail(i, "the reply goes on with %q", reply)
		}
		switch kind {
		case "---":
			w, begun, reply = dialWire(t, m.addr), rest, nil
			skip = notHeld[m.role+": "+rest] != ""
		case ">":
			w.send(resp.AppendRequest(nil, goWords(t, rest)...))
			reply = nil
			if !endsConnection(rest) {
				reply = replyLines(w.next())
			}
		case "<", "<~":
			if len(reply) == 0 {
				fail(i+1, "the reply has no line %q", rest)
			} else if ok := lineMatches(kind, rest, reply[0]); !ok {
				fail(i+1, "got the line %q, want %q", reply[0], rest)
			} else {
				reply = reply[1:]
			}
		case "<*":
			reply = nil
		case "=":
			if got := w.next(); got != nil {
				fail(i+1, "got %q, want the end", got)
			}
		}
	}
}

// endsConnection tells requests that are not even answered.
func endsConnection(request string) bool {
	return strings.HasPrefix(request, "POST ") || strings.HasPrefix(request, "Host: ")
}

func lineMatches(kind, want, got string) bool {
	if kind == "<" {
		return want == got
	}
	return regexp.MustCompile("^(?:" + want + ")$").MatchString(got)
}

// replyLines splits a reply as the files show it.
func replyLines(reply []byte) []string {
	if reply == nil {
		return nil
	}
	lines := strings.Split(strings.TrimSuffix(string(reply), "\r\n"), "\r\n")
	for i := range lines {
		lines[i] = strings.ReplaceAll(lines[i], "\n", `\n`)
	}
	return lines
}

// goWords splits a request; words in quotes are Go strings.
func goWords(t *testing.T, line string) (words [][]byte) {
	t.Helper()
	for line = strings.TrimLeft(line, " "); line != ""; line = strings.TrimLeft(line, " ") {
		word, rest, _ := strings.Cut(line, " ")
		if line[0] == '"' {
			quoted, err := strconv.QuotedPrefix(line)
			if err != nil {
				t.Fatalf("cannot read %q: %v", line, err)
			}
			word, _ = strconv.Unquote(quoted)
			rest = line[len(quoted):]
		}
		words, line = append(words, []byte(word)), rest
	}
	return words
}
