package test

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
)

// TestDrainedProxy ends a proxy by SIGTERM while clients pipeline, with and without TLS: what it has taken is executed
// once and answered, and what it has not is not executed.
func TestDrainedProxy(t *testing.T) {
	t.Parallel()
	ca := certtest.New(t)
	cert, key := ca.Issue(t, "proxy")
	for name, flags := range map[string][]string{"plain": nil, "TLS": {"DUNLIN_TLS_CERT=" + cert, "DUNLIN_TLS_KEY=" + key}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := startClusterWith(t, startOptions{nodes: 2, proxies: 2, env: flags})
			dial := func(i int) *wire {
				if flags == nil {
					return dialWire(t, c.proxy(i).addr)
				}
				d := tls.Dialer{Config: &tls.Config{RootCAs: ca.Pool}, NetDialer: &net.Dialer{Timeout: replyTimeout}}
				conn, err := d.DialContext(t.Context(), "tcp", c.proxy(i).addr)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { conn.Close() })
				return &wire{t: t, conn: conn}
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
					for w.write([]byte(strings.Repeat(string(batch), depth))) == nil {
						ahead <- struct{}{}
					}
				}()
				busy.Go(func() {
					defer w.conn.Close()
					r := bufio.NewReader(w.conn)
					for {
						_ = w.conn.SetReadDeadline(time.Now().Add(replyTimeout))
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
			eventually(t, readyTimeout, "clients are busy", func() bool { return total.Load() > clients*20*depth })
			c.proxy(0).term(10 * time.Second)
			busy.Wait()
			w := dial(1)
			for i := range clients {
				want := "(nil)" // on a busy machine it may not have begun
				if answered[i] > 0 {
					want = fmt.Sprintf("%q", fmt.Sprint(answered[i]))
				}
				if got := conversation.Text(w.do(fmt.Sprintf("GET counter:%d", i))); got != want {
					t.Errorf("client %d has %d replies, and the counter is %s", i, answered[i], got)
				}
			}
		})
	}
}
