package chaos

import (
	"io"
	"math/rand/v2"
	"net"
	"testing"

	"github.com/dunlin-cache/dunlin/test/harness"
)

// TestSessionCutWithinAReply: a session whose connection is closed within a reply takes this one
// and the later ones for unknown, and goes on over another connection, in its database. One that is
// closed between two replies, or that answers what is no reply, is a violation.
func TestSessionCutWithinAReply(t *testing.T) {
	for partial, wrong := range map[string]int{"$300000\r\nabc": 0, "": 1, "?\r\n": 1} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		lengths, served := make(chan int, 2), make(chan string, 2)
		go func() {
			for _, reply := range []string{"+OK\r\n" + partial, "+OK\r\n"} {
				c, err := l.Accept()
				if err != nil {
					return
				}
				in := make([]byte, <-lengths)
				_, _ = io.ReadFull(c, in)
				served <- string(in)
				_, _ = c.Write([]byte(reply))
				c.Close()
			}
		}()
		x := &Rig{T: t, tolerated: map[string]int{}}
		s := &Session{X: x, name: "s", at: &harness.Member{Addr: l.Addr().String()}, Rng: rand.New(rand.NewPCG(1, 2))}
		if s.Link, err = harness.DialLink(s.at.Addr); err != nil {
			t.Fatal(err)
		}
		outcomes := []outcome{}
		s.use(1)
		for range 2 {
			s.Add(func(reply []byte) { outcomes = append(outcomes, x.Outcome(s, reply, "")) }, "GET", "large")
			s.echo()
			s.exactly("+QUEUED\r\n", "GET", "k")
		}
		const selects = "SELECT 1\r\n"
		lengths <- len(s.out)
		lengths <- len(selects)
		if went := s.Exchange(); went != (wrong == 0) || x.CountViolations() != wrong {
			t.Errorf("%q: it goes on: %v, with %d violations, want %d", partial, went, x.CountViolations(), wrong)
		}
		if wrong == 0 && (len(outcomes) != 2 || outcomes[0] != unknown || outcomes[1] != unknown) {
			t.Errorf("%q: the outcomes are %v, want two unknown ones", partial, outcomes)
		}
		<-served
		if wrong == 0 {
			if got := <-served; got != selects {
				t.Errorf("the new connection begins with %q, want %q", got, selects)
			}
		}
	}
}
