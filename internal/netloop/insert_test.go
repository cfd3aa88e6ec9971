package netloop

import (
	"errors"
	"net"
	"testing"
	"time"
)

// lender owns the bytes of inserts. Released bytes read as poison.
type lender struct {
	b        []byte
	released int
}

func (l *lender) Release() {
	l.released++
	for i := range l.b {
		l.b[i] = poisonByte
	}
}

func insertString(c *Conn, at int, s string) *lender {
	l := &lender{b: []byte(s)}
	c.Insert(at, l.b, l)
	return l
}

// Inserts are sent in their places, whatever is before, between and behind them.
func TestInserts(t *testing.T) {
	for _, size := range []int{1, 1000, maxTurn, 3*maxTurn + 1, tooMuch} {
		g := newGroup(t, Config{Loops: 1, SoftOut: 4 * tooMuch})
		body, want := randomLine(size), ""
		var lenders []*lender
		nc := dialTo(t, serve(t, g, funcs{data: func(c *Conn, in []byte) int {
			for range in {
				out := append(c.Out(), "before "...)
				first := len(out)
				out = append(out, " between "...)
				second := len(out)
				c.SetOut(append(out, " behind "...))
				lenders = append(lenders, insertString(c, first, body), insertString(c, first, "!"),
					insertString(c, second, body[:size/2]))
				out = append(c.Out(), "more "...)
				third := len(out)
				c.SetOut(out)
				lenders = append(lenders, insertString(c, third, body), insertString(c, third, ""))
				c.SetOut(append(c.Out(), "\n"...))
			}
			return len(in)
		}}))
		want = "before " + body + "! between " + body[:size/2] + " behind more " + body + "\n"
		for range 2 {
			write(t, nc, "x")
			expect(t, nc, want)
		}
		write(t, nc, "x")
		write(t, nc, "x")
		expect(t, nc, want+want)
		eventually(t, g, "all is released", func(l *Loop) bool { return l.inserting == 0 && l.pool.lent == 0 })
		each(t, g, func(*Loop) {
			for i, l := range lenders {
				if l.released != 1 {
					t.Errorf("insert %d was released %d times", i, l.released)
				}
			}
		})
	}
}

// However a conn ends, its inserts are released once.
func TestInsertsOfClosedConns(t *testing.T) {
	line := randomLine(tooMuch)
	for name, end := range map[string]func(g *Group, c *Conn, nc *net.TCPConn){
		"stalled":      func(*Group, *Conn, *net.TCPConn) {},
		"reset":        func(_ *Group, _ *Conn, nc *net.TCPConn) { reset(nc) },
		"closed":       func(_ *Group, c *Conn, _ *net.TCPConn) { c.loop.Post(func() { c.Close(nil) }) },
		"group closed": func(g *Group, _ *Conn, _ *net.TCPConn) { go g.Close() },
		"finishing":    func(_ *Group, c *Conn, _ *net.TCPConn) { c.loop.Post(c.CloseAfterFlush) },
	} {
		t.Run(name, func(t *testing.T) {
			g := newGroup(t, Config{Loops: 1, Stall: 300 * time.Millisecond})
			type ended struct{ lenders []*lender }
			conns, ends := make(chan *Conn, 1), make(chan ended, 1)
			var all ended
			nc := dialTo(t, serve(t, g, funcs{
				data: func(c *Conn, in []byte) int {
					for range 3 {
						c.SetOut(append(c.Out(), "text"...))
						all.lenders = append(all.lenders, insertString(c, len(c.Out()), line))
					}
					conns <- c
					return len(in)
				},
				closed: func(c *Conn, _ error) {
					all.lenders = append(all.lenders, insertString(c, 0, "too late"))
					if c.loop.inserting != 0 {
						t.Errorf("%d conns are inserting", c.loop.inserting)
					}
					ends <- all
				},
			}))
			write(t, nc, "x")
			end(g, receive(t, conns), nc)
			for i, l := range receive(t, ends).lenders {
				if l.released != 1 {
					t.Errorf("insert %d was released %d times", i, l.released)
				}
			}
		})
	}
}

// Inserts do not count as the conn's memory, and output added behind them does not pile up.
func TestInsertsPassHardLimit(t *testing.T) {
	g := newGroup(t, Config{Loops: 1, SoftOut: 10_000, HardOut: 100_000})
	closed, reasons := closeReasons()
	body := randomLine(tooMuch)
	nc := dialTo(t, serve(t, g, funcs{closed: closed, data: func(c *Conn, in []byte) int {
		insertString(c, len(c.Out()), body)
		for range 9 {
			c.SetOut(append(c.Out(), body[:10_000]...))
		}
		if !c.Full() {
			t.Error("a conn with much to send is not full")
		}
		return len(in)
	}}))
	write(t, nc, "x")
	expect(t, nc, body)
	for range 9 {
		expect(t, nc, body[:10_000])
	}
	nc.Close()
	if err := receive(t, reasons); errors.Is(err, ErrSlowReader) {
		t.Error(err)
	}
}

// An iteration moves one turn's bytes of each conn that inserts or streams, and fewer if there are
// several such conns.
func TestTurns(t *testing.T) {
	const conns = 6
	g := newGroup(t, Config{Loops: 1, SoftOut: 4 * tooMuch})
	body := randomLine(tooMuch)
	ln := serve(t, g, funcs{data: func(c *Conn, in []byte) int {
		c.Stream(true)
		if in[0] == '!' {
			insertString(c, len(c.Out()), body)
			c.SetOut(append(c.Out(), '\n'))
		}
		return len(in)
	}})
	var out, in, bytesOut, bytesIn uint64
	each(t, g, func(l *Loop) {
		l.OnIterationEnd(func() {
			out, in = max(out, l.stats.BytesOut-bytesOut), max(in, l.stats.BytesIn-bytesIn)
			bytesOut, bytesIn = l.stats.BytesOut, l.stats.BytesIn
		})
	})
	done := make(chan error, conns)
	for range conns {
		nc := dialTo(t, ln)
		go func() {
			_, err := nc.Write([]byte("!" + body))
			done <- err
		}()
		go func() {
			got := make([]byte, len(body)+1)
			for n := 0; n < len(got); {
				m, err := nc.Read(got[n:])
				if err != nil {
					t.Error(err)
					return
				}
				n += m
			}
			done <- nil
		}()
	}
	for range 2 * conns {
		if err := receive(t, done); err != nil {
			t.Fatal(err)
		}
	}
	each(t, g, func(*Loop) {
		// A conn that finishes in the middle of an iteration leaves the others a larger share. And
		// the first read of each conn comes before the conn says that it streams.
		if out > 2*turnShare || in > 2*turnShare+conns*scratchSize {
			t.Errorf("up to %d bytes were sent and %d received in one iteration", out, in)
		}
	})
}

// Replies with inserts of which nothing was sent are given up for a line each. One that was begun
// stays, and so do all others.
func TestGiveUpReplies(t *testing.T) {
	g := newGroup(t, Config{Loops: 1, SoftOut: 4 * tooMuch})
	first, second := randomLine(tooMuch), randomLine(tooMuch)
	var lenders []*lender
	got := make(chan bool, 1)
	nc := dialTo(t, serve(t, g, funcs{data: func(c *Conn, in []byte) int {
		for _, b := range in {
			switch out := c.Out(); b {
			case '1', '2':
				start := len(out)
				at := len(append(out, "header "...))
				c.SetOut(append(out, "header  end, between, "...))
				lenders = append(lenders, insertString(c, at, map[byte]string{'1': first, '2': second}[b]))
				c.IsReply(start, at+len(" end"))
			case 'm': // more than the reply of an insert
				c.SetOut(append(out, "other "...))
				lenders = append(lenders, insertString(c, len(out), "x"))
			case 'g':
				got <- c.GiveUpReplies("lost")
				c.SetOut(append(c.Out(), "\n"...))
			}
		}
		return len(in)
	}}))
	for _, f := range []struct {
		input, want string
		ok          bool
	}{
		{"g", "\n", true},
		{"12g", "lost, between, lost, between, \n", true},
		{"2mg", "header " + second + " end, between, xother \n", false},
	} {
		write(t, nc, f.input)
		if ok := <-got; ok != f.ok {
			t.Errorf("%q: given up %t", f.input, ok)
		}
		expect(t, nc, f.want)
	}
	write(t, nc, "1") // its beginning is sent, before the next input comes
	expect(t, nc, "header ")
	write(t, nc, "2g")
	if <-got {
		t.Error("a reply is given up that was begun")
	}
	expect(t, nc, first+" end, between, header "+second+" end, between, \n")
	eventually(t, g, "all is released", func(l *Loop) bool { return l.inserting == 0 && l.pool.lent == 0 })
	for i, l := range lenders {
		if l.released != 1 {
			t.Errorf("insert %d was released %d times", i, l.released)
		}
	}
}
