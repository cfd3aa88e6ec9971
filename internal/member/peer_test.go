package member

import (
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"
)

// wire is a connection that reads from a script.
type wire struct {
	net.Conn
	in io.Reader
}

func (w *wire) Read(b []byte) (int, error) { return w.in.Read(b) }

// TestPeerNext reads the same replies in one piece and byte by byte.
func TestPeerNext(t *testing.T) {
	const script = "+OK\r\n$5\r\nhello\r\n:7\r\n*2\r\n:1\r\n$-1\r\n"
	want := []string{"+OK\r\n", "$5\r\nhello\r\n", ":7\r\n", "*2\r\n:1\r\n$-1\r\n"}
	whole, pieces := strings.NewReader(script), iotest.OneByteReader(strings.NewReader(script))
	for name, in := range map[string]io.Reader{"whole": whole, "bytes": pieces} {
		p := &Peer{Addr: "n", Conn: &wire{in: in}}
		var got []string
		for len(got) < len(want) {
			if err := p.Fill(); err != nil {
				t.Fatalf("%s: %v after %d replies", name, err, len(got))
			}
			for {
				reply, err := p.Next()
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if reply == nil {
					break
				}
				got = append(got, string(reply))
			}
		}
		if strings.Join(got, "|") != strings.Join(want, "|") {
			t.Errorf("%s: replies are %q, want %q", name, got, want)
		}
	}
}

// TestPeerRefusesWhatIsNoReply: a malformed or endless reply ends with an error, and no longer
// buffer than MaxReply and a read.
func TestPeerRefusesWhatIsNoReply(t *testing.T) {
	f := func(in io.Reader, want string) {
		t.Helper()
		p := &Peer{Addr: "n", Conn: &wire{in: in}}
		for {
			if reply, err := p.Next(); err != nil || reply != nil {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("reply %.20q, error %v; want %q", reply, err, want)
				}
				break
			}
			if err := p.Fill(); err != nil {
				t.Fatal(err)
			}
		}
		if cap(p.in) > 4*MaxReply {
			t.Errorf("the buffer has %d bytes", cap(p.in))
		}
	}
	f(strings.NewReader("what?\r\n"), "malformed")
	f(endless{}, "more than")
}

// endless is a bulk string of 400 MB.
type endless struct{}

func (endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = '0'
	}
	copy(b, "$400000000\r\n")
	return len(b), nil
}
