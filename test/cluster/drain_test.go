package cluster

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/certtest"
	"github.com/dunlin-cache/dunlin/internal/conversation"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// TestDrainedProxy ends a proxy by SIGTERM while clients pipeline, with and without TLS. Each
// command that the proxy has accepted is executed once and answered; no other command is executed.
func TestDrainedProxy(t *testing.T) {
	t.Parallel()
	ca := certtest.New(t)
	cert, key := ca.Issue(t, "proxy")
	for name, flags := range map[string][]string{"plain": nil, "TLS": {"DUNLIN_TLS_CERT=" + cert, "DUNLIN_TLS_KEY=" + key}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := harness.StartClusterWith(t, harness.StartOptions{Nodes: 2, Proxies: 2, Env: flags})
			dial := func(i int) *harness.Wire {
				if flags == nil {
					return harness.DialWire(t, c.Proxy(i).Addr)
				}
				d := tls.Dialer{Config: &tls.Config{RootCAs: ca.Pool}, NetDialer: &net.Dialer{Timeout: harness.ReplyTimeout}}
				conn, err := d.DialContext(t.Context(), "tcp", c.Proxy(i).Addr)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { conn.Close() })
				return &harness.Wire{T: t, Conn: conn}
			}
			const clients, depth = 6, 50
			var answered [clients]int64
			var total atomic.Int64
			var busy sync.WaitGroup
			for i := range clients {
				w := dial(0)
				batch := resp.AppendRequest(nil, []byte("INCR"), fmt.Appendf(nil, "counter:%d", i))
				ahead := make(chan struct{}, 20) // batches that are sent and not answered
				go func() {
					for w.Write([]byte(strings.Repeat(string(batch), depth))) == nil {
						ahead <- struct{}{}
					}
				}()
				busy.Go(func() {
					defer w.Conn.Close()
					r := bufio.NewReader(w.Conn)
					for {
						_ = w.Conn.SetReadDeadline(time.Now().Add(harness.ReplyTimeout))
						reply, err := r.ReadBytes('\n')
						if err != nil {
							if len(reply) > 0 || isTimeout(err) {
								t.Errorf("the connection ends with %q: %v", reply, err)
							}
							return
						}
						n, ok := resp.DecodeInt(reply)
						if answered[i]++; !ok || n != answered[i] {
							t.Errorf("reply %d of client %d is %q", answered[i], i, reply)
							return
						}
						if total.Add(1); n%depth == 0 {
							<-ahead
						}
					}
				})
			}
			harness.Eventually(t, harness.ReadyTimeout, "clients are busy", func() bool { return total.Load() > clients*20*depth })
			c.Proxy(0).Term(10 * time.Second)
			busy.Wait()
			w := dial(1)
			for i := range clients {
				want := "(nil)" // on a busy machine the writer may not have begun
				if answered[i] > 0 {
					want = fmt.Sprintf("%q", fmt.Sprint(answered[i]))
				}
				if got := conversation.Text(w.Do(fmt.Sprintf("GET counter:%d", i))); got != want {
					t.Errorf("client %d has %d replies, and the counter is %s", i, answered[i], got)
				}
			}
		})
	}
}
