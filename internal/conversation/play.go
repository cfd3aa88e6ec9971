package conversation

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// patience is for a reply that comes later (until>), on a machine busy with other tests.
const patience = 20 * time.Second

// Peer is a connection as its test made it. Both functions fail the test themselves.
type Peer struct {
	Send func([]byte)
	Next func() []byte // the next reply, nil for the end of the connection
}

// Server is what a conversation is held with.
type Server struct {
	Dial  func() Peer
	Redis bool // where they differ, Redis's replies are the right ones
	// Database is what every connection selects. Pinned: its keys lie in one slot, so that Redis's
	// reply is the right one to a command that is refused because of its keys' slots.
	Database int
	Pinned   bool
}

// dial returns a connection that has selected the database.
func (s *Server) dial(t *testing.T) Peer {
	t.Helper()
	p := s.Dial()
	s.choose(t, p)
	return p
}

// choose selects the database on a connection.
func (s *Server) choose(t *testing.T, p Peer) {
	t.Helper()
	if s.Database > 0 {
		if got := p.do(t, "SELECT "+strconv.Itoa(s.Database)); string(got) != "+OK\r\n" {
			t.Fatalf("SELECT %d answers %q", s.Database, got)
		}
	}
}

// wants returns the reply that an exchange is to have.
func (s *Server) wants(x *exchange) string {
	if s.Redis || s.Pinned && strings.HasPrefix(x.dunlin, "(error) CROSSSLOT") {
		return x.redis
	}
	return x.dunlin
}

// Play replays a conversation with a server, whose data it throws away before, unless the file is about other
// databases. After a closed connection it goes on with a new one.
func Play(t *testing.T, file string, s Server) {
	if s.skips(t, file) {
		return
	}
	p := s.dial(t)
	var other *Peer // of other>
	if got := p.do(t, "FLUSHALL"); string(got) != "+OK\r\n" {
		t.Fatalf("FLUSHALL answers %q", got)
	}
	for _, x := range read(t, file) {
		if s.Redis && x.ours {
			break
		}
		want := s.wants(&x)
		to := p
		if x.mode == "other" {
			if other == nil {
				second := s.dial(t)
				other = &second
			}
			to = *other
		}
		got := x.say(t, to, want)
		for deadline := time.Now().Add(patience); x.mode == "until" && got != want && time.Now().Before(deadline); {
			time.Sleep(2 * time.Millisecond)
			got = x.say(t, p, want)
		}
		closed := strings.HasSuffix(got, "(closed)")
		if x.mode == "sorted" {
			got, want = Sorted(got), Sorted(want)
		}
		if got != want && x.mode != "quiet" {
			t.Errorf("%s:%d: %s answers\n%s\nwant\n%s", file, x.line, x.request, got, want)
		}
		if closed {
			p = s.dial(t)
		} else if strings.Contains(x.request, "RESET") { // database 0 is selected
			s.choose(t, to)
		}
	}
}

// say sends the request and returns its reply as the file would show it.
func (x *exchange) say(t *testing.T, p Peer, want string) string {
	t.Helper()
	switch x.mode {
	case "next":
		return Text(p.Next())
	case "next-wire":
		return strconv.Quote(string(p.Next()))
	case "wire":
		return strconv.Quote(string(p.do(t, x.request)))
	case "raw":
		bytes, err := strconv.Unquote(x.request)
		if err != nil {
			t.Fatalf("line %d: cannot unquote %s: %v", x.line, x.request, err)
		}
		p.Send([]byte(bytes))
		replies := make([]string, strings.Count(want, "\n")+1) // one-line replies only
		for i := range replies {
			replies[i] = Text(p.Next())
		}
		return strings.Join(replies, "\n")
	}
	return Text(p.do(t, x.request))
}

// do sends a request in redis-cli's quoting.
func (p Peer) do(t *testing.T, line string) []byte {
	t.Helper()
	var parser resp.Parser
	if parser.Parse([]byte(line+"\r\n")) != resp.Done {
		t.Fatalf("cannot split %q: %s", line, parser.Err())
	}
	p.Send(resp.AppendRequest(nil, parser.Args()...))
	return p.Next()
}

// elementNumbers precede an element, several where arrays are nested.
var elementNumbers = regexp.MustCompile(`(?m)^( *\d+\) )+`)

// Sorted sorts the elements of an array, without their numbers.
func Sorted(reply string) string {
	lines := strings.Split(Unnumbered(reply), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// Unnumbered is the text of a reply without the elements' numbers.
func Unnumbered(reply string) string { return elementNumbers.ReplaceAllString(reply, "") }
