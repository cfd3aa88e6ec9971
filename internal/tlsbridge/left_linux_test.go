//go:build !portable

package tlsbridge

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/certtest"
)

// TestLeavingWhileTheLoopPauses: a client that leaves in front of more input than the buffers hold is noticed although
// the loop reads nothing, and so are its goroutines. One that stays is waited for.
func TestLeavingWhileTheLoopPauses(t *testing.T) {
	a := certtest.New(t)
	s := serve(t, mustLoad(t, files(t, a, "server", false)))
	s.longest = 20 * time.Millisecond
	before := runtime.NumGoroutine()
	begin := func(what []byte) (c *tls.Conn, inner *net.UnixConn, sent chan struct{}) {
		c = dialTLS(t, s.addr, &tls.Config{RootCAs: a.Pool})
		sent = make(chan struct{})
		go func() {
			defer close(sent)
			_, _ = c.Write(what)
		}()
		return c, s.accepted(t), sent
	}
	much := randomBytes(32 << 20)
	stays, inner, sent := begin(much)
	_ = inner.SetReadDeadline(time.Now().Add(patience))
	time.Sleep(5 * s.longest)
	got := make([]byte, len(much))
	if n, err := io.ReadFull(inner, got); err != nil || !bytes.Equal(got, much) {
		t.Errorf("%d bytes came of a client that stays, error %v", n, err)
	}
	<-sent
	stays.Close()
	inner.Close()
	settle(t, before)

	near, far, err := pair()
	if err != nil {
		t.Fatal(err)
	}
	more := much[:fill(near)+2*bufferSize] // and no more than the system keeps of what is unread: then it hears of the end
	near.Close()
	_ = syscall.Close(far)
	leaves, inner, sent := begin(more)
	<-sent
	_ = leaves.NetConn().Close()
	settle(t, before) // nothing was read
	_ = inner.SetReadDeadline(time.Now().Add(patience))
	if n, err := io.Copy(io.Discard, inner); n >= int64(len(more)) || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%d bytes come of a client that has left, error %v", n, err)
	}
}
