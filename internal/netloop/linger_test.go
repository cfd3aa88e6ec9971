package netloop

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"
)

// lastWords answers the first input with a large reply and then closes.
type lastWords struct{ reply []byte }

func (h lastWords) OnData(c *Conn, in []byte) int {
	c.SetOut(append(c.Out(), h.reply...))
	c.CloseAfterFlush()
	return len(in)
}
func (lastWords) OnClose(*Conn, error) {}

// A peer that keeps sending while the connection is closed still gets the whole reply:
// closing a socket with unread input would reset the connection and lose the end of it.
func TestPeerThatKeepsSendingGetsTheWholeReply(t *testing.T) {
	g, err := NewGroup(Config{Loops: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	reply := bytes.Repeat([]byte("0123456789abcdef"), 256<<10) // 4 MiB: more than socket buffers hold
	ln, err := g.Listen("127.0.0.1:0", func(*Conn) Handler { return lastWords{reply} })
	if err != nil {
		t.Fatal(err)
	}
	peer, err := net.Dial("tcp", ln.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		chunk := make([]byte, 32<<10)
		for {
			if _, err := peer.Write(chunk); err != nil {
				return
			}
		}
	}()
	if err := peer.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	time.Sleep(lingerTime + 200*time.Millisecond) // a peer that had received everything would be cut off by now
	got := make([]byte, len(reply))
	if n, err := io.ReadFull(peer, got); err != nil {
		t.Fatalf("read %d of %d bytes: %v", n, len(reply), err)
	}
	if n, err := peer.Read(got); err != io.EOF {
		t.Fatalf("behind the reply: read %d bytes, error %v, want end of file", n, err)
	}
	peer.Close()
	<-sent
}
