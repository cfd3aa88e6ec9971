package conversation

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Script is a file of conversations line by line.
type Script struct {
	File     string
	Password string // that its servers want
	Cluster  bool   // Redis's is a node of a Redis Cluster
	dialogs  []Dialog
}

// Dialog is what one connection says and hears.
type Dialog struct {
	Title string
	Ours  bool // Redis is not held to it
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

// Talker is one end that scripts are held with.
type Talker interface {
	// Connect begins a new connection.
	Connect(t *testing.T)
	// Talk returns the whole reply to a request, empty if there is none, and
	// whether the connection has been closed behind it.
	Talk(t *testing.T, request [][]byte, expectClose bool) (reply []byte, closed bool)
}

// Hold holds the script's dialogs with one end, but for those to skip.
func (s *Script) Hold(t *testing.T, with Talker, skip func(Dialog) bool) {
	for _, d := range s.dialogs {
		if skip(d) {
			continue
		}
		t.Run(d.Title, func(t *testing.T) {
			with.Connect(t)
			for _, turn := range d.turns {
				reply, closed := with.Talk(t, turn.request, turn.closed)
				turn.compare(t, s.File, reply)
				if closed != turn.closed {
					t.Fatalf("%s:%d: closed is %v, want %v", s.File, turn.line, closed, turn.closed)
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

// ReadScript reads a file.
func ReadScript(t *testing.T, file string) *Script {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := &Script{File: file}
	ours := false
	for i, line := range strings.Split(strings.TrimSuffix(string(content), "\n"), "\n") {
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "---":
			s.dialogs = append(s.dialogs, Dialog{Title: rest, Ours: ours})
			ours = false
		case "@ours":
			ours = true
		case "@password":
			s.Password = rest
		case "@cluster":
			s.Cluster = true
		case ">":
			s.last().turns = append(s.last().turns, turn{line: i + 1, request: Words(t, rest)})
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

func (s *Script) last() *Dialog { return &s.dialogs[len(s.dialogs)-1] }

func (s *Script) turn() *turn { return &s.last().turns[len(s.last().turns)-1] }

// Words splits a request line; a word that begins with a quote is a Go string.
func Words(t *testing.T, line string) (request [][]byte) {
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
