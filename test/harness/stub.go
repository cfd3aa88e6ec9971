package harness

import (
	"fmt"
	"net"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// ServeLines starts a server for the length of the test and returns its address. answer gets the
// arguments of each request as fmt prints them, or "malformed" for input that is no request, and
// returns the reply and whether the server then closes the connection.
func ServeLines(t *testing.T, answer func(args string) (reply string, closes bool)) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go serveLine(conn, answer)
		}
	}()
	return l.Addr().String()
}

func serveLine(conn net.Conn, answer func(args string) (reply string, closes bool)) {
	defer conn.Close()
	var p resp.Parser
	var in []byte
	piece := make([]byte, 4096)
	for {
		n, err := conn.Read(piece)
		if err != nil {
			return
		}
		in = append(in, piece[:n]...)
		for outcome := p.Parse(in); outcome != resp.NeedMore; outcome = p.Parse(in) {
			said := "malformed"
			if outcome == resp.Done {
				said = fmt.Sprintf("%s", p.Args())
				in = in[p.Len():]
			}
			reply, closes := answer(said)
			if _, err := conn.Write([]byte(reply)); err != nil || closes {
				return
			}
			if outcome == resp.Malformed {
				in = nil
				break
			}
		}
	}
}
