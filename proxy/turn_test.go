package proxy

import (
	"bytes"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// Commands that the proxy queues or answers itself leave others their turns, however many one input has.
func TestManyCommandsTakeTurns(t *testing.T) {
	c := newCluster(t, 1, oneLoop(t))
	for first, request := range map[string][]byte{
		"MULTI": resp.AppendRequest(nil, []byte("INCR"), []byte("k")),
		"PING":  resp.AppendRequest(nil, []byte("CLIENT"), []byte("REPLY"), []byte("SKIP")),
	} {
		cl := c.dial()
		cl.send(first)
		cl.reply()
		const n = 50_000
		input, used := bytes.Repeat(request, n), make(chan int)
		w := c.proxy.workers[0]
		w.loop.Post(func() {
			s := w.clients[len(w.clients)-1]
			used <- s.OnData(s.conn, input)
		})
		if used := <-used; used == 0 || used%len(request) != 0 || used > len(input)/2 {
			t.Errorf("behind %s, %d bytes of %d are taken at once", first, used, len(input))
		}
		cl.Close()
	}
}
