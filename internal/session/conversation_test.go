package session

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The files in testdata are conversations between a client and a server, each
// held with our Server and again with a real redis-server. Their lines:
//
//	--- title     a new connection
//	> WORD "w 2"  a request; quoted words as in Go
//	< line        one line of the reply, up to CR LF, exactly; a line feed is shown as \n
//	<~ regexp     the same, matched as a whole
//	<*            whatever else the reply has
//	= closed      the server has closed the connection
//	@password p   the file's servers want this password
//	@cluster      the file's real server is a node of a Redis Cluster
//	@ours reason  the conversation that follows is not held with the real one
//
// Everything else is prose.
type script struct {
	name          string
	password      string
	cluster       bool
	conversations []conversation
}

type conversation struct {
	title string
	ours  bool
	turns []turn
}

// turn is a request and what is to come back.
type turn struct {
	line    int
	request [][]byte
	want    []wantLine
	more    bool // the reply may go on behind want
	closed  bool
}

type wantLine struct {
	text    string
	pattern *regexp.Regexp // nil: text must be equal
}

func (w wantLine) matches(line string) bool {
	if w.pattern != nil {
		return w.pattern.MatchString(line)
	}
	return w.text == line
}

// talker is one end that conversations are held with.
type talker interface {
	// connect begins a new connection.
	connect(t *testing.T)
	// talk returns the whole reply to a request, empty if there is none, and
	// whether the connection has been closed behind it.
	talk(t *testing.T, request [][]byte, expectClose bool) (reply []byte, closed bool)
}

// hold holds the script's conversations with one end.
func (s *script) hold(t *testing.T, with talker, real bool) {
	for _, c := range s.conversations {
		if real && c.ours {
			continue
		}
		t.Run(c.title, func(t *testing.T) {
			with.connect(t)
			for _, turn := range c.turns {
				reply, closed := with.talk(t, turn.request, turn.closed)
				turn.compare(t, s.name, reply)
				if closed != turn.closed {
					t.Fatalf("%s:%d: closed is %v, want %v", s.name, turn.line, closed, turn.closed)
				}
			}
		})
	}
}

func (turn *turn) compare(t *testing.T, file string, reply []byte) {
	t.Helper()
	got := replyLines(reply)
	for i, line := range got {
		if i >= len(turn.want) && turn.more {
			return
		}
		if i >= len(turn.want) || !turn.want[i].matches(line) {
			want := "nothing"
			if i < len(turn.want) {
				want = strconv.Quote(turn.want[i].text)
			}
			t.Fatalf("%s:%d: %q: line %d of the reply is %q, want %s\nwhole reply:\n%s",
				file, turn.line, turn.request, i+1, line, want, strings.Join(got, "\n"))
		}
	}
	if len(got) < len(turn.want) {
		t.Fatalf("%s:%d: %q: the reply ends before %q:\n%s", file, turn.line, turn.request,
			turn.want[len(got)].text, strings.Join(got, "\n"))
	}
}

// replyLines splits a reply as the files show it.
func replyLines(reply []byte) []string {
	if len(reply) == 0 {
		return nil
	}
	text := strings.TrimSuffix(string(reply), "\r\n")
	lines := strings.Split(text, "\r\n")
	for i := range lines {
		lines[i] = strings.ReplaceAll(lines[i], "\n", `\n`)
	}
	return lines
}

func readScripts(t *testing.T) []*script {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("cannot find testdata: %v", err)
	}
	var scripts []*script
	for _, file := range files {
		scripts = append(scripts, readScript(t, file))
	}
	return scripts
}

func readScript(t *testing.T, file string) *script {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := &script{name: file}
	ours := false
	for i, line := range strings.Split(strings.TrimSuffix(string(content), "\n"), "\n") {
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "---":
			s.conversations = append(s.conversations, conversation{title: rest, ours: ours})
			ours = false
		case "@ours":
			ours = true
		case "@password":
			s.password = rest
		case "@cluster":
			s.cluster = true
		case ">":
			s.current().turns = append(s.current().turns, turn{line: i + 1, request: words(t, rest)})
		case "<":
			s.turn().want = append(s.turn().want, wantLine{text: rest})
		case "<~":
			s.turn().want = append(s.turn().want, wantLine{text: rest, pattern: regexp.MustCompile("^(?:" + rest + ")$")})
		case "<*":
			s.turn().more = true
		case "=":
			s.turn().closed = true
		}
	}
	return s
}

func (s *script) current() *conversation { return &s.conversations[len(s.conversations)-1] }

func (s *script) turn() *turn { return &s.current().turns[len(s.current().turns)-1] }

// words splits a request line; a word that begins with a quote is a Go string.
func words(t *testing.T, line string) (request [][]byte) {
	t.Helper()
	for line = strings.TrimLeft(line, " "); line != ""; line = strings.TrimLeft(line, " ") {
		if line[0] != '"' {
			word, rest, _ := strings.Cut(line, " ")
			request, line = append(request, []byte(word)), rest
			continue
		}
		quoted, err := strconv.QuotedPrefix(line)
		if err != nil {
			t.Fatalf("cannot read %q: %v", line, err)
		}
		word, err := strconv.Unquote(quoted)
		if err != nil {
			t.Fatalf("cannot read %q: %v", line, err)
		}
		request, line = append(request, []byte(word)), line[len(quoted):]
	}
	return request
}

func TestConversations(t *testing.T) {
	for _, s := range readScripts(t) {
		t.Run(filepath.Base(s.name), func(t *testing.T) {
			s.hold(t, &ourEnd{server: testServer(s.password)}, false)
		})
	}
}
