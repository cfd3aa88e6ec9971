package proxy

import (
	"bytes"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// Commands that the proxy queues or answers itself leave others their turns, however many one input has.
func TestManyCommandsTakeTurns(t *testing.T) {
	c := newCluster(t, 1, oneLoop(t))
	slow := resp.AppendRequest(nil, []byte("COMMAND"), []byte("LIST"), []byte("FILTERBY"), []byte("PATTERN"),
		append(bytes.Repeat([]byte("*e"), 20), '#'))
	for _, test := range []struct {
		first   string
		request []byte
		n       int
	}{
		{"MULTI", resp.AppendRequest(nil, []byte("INCR"), []byte("k")), 50_000},
		{"PING", resp.AppendRequest(nil, []byte("CLIENT"), []byte("REPLY"), []byte("SKIP")), 50_000},
		{"PING", slow, 60},
	} {
		first, request := test.first, test.request
		cl := c.dial()
		cl.send(first)
		cl.reply()
		input, used := bytes.Repeat(request, test.n), make(chan int)
		w := c.proxy.workers[0]
		w.loop.Post(func() {
			s := w.clients[len(w.clients)-1]
			used <- s.OnData(s.conn, input)
		})
		if used := <-used; used == 0 || used%len(request) != 0 || used > len(input)/2 {
			t.Errorf("behind %s, %d bytes of %d of %.40q are taken at once", first, used, len(input), request)
		}
		cl.Close()
	}
}
