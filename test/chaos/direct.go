package chaos

import (
	"strings"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// isRedirect reports whether a node answers that it does not serve the key, or not yet.
func isRedirect(reply []byte) bool {
	code, _, _ := strings.Cut(string(reply), " ")
	return code == "-MOVED" || code == "-TRYAGAIN" || code == "-CLUSTERDOWN"
}

// direct reads all keys at one node, like a cluster client with an old map.
type direct struct {
	x    *Rig
	node *harness.Member
}

// run connects again whenever the connection has ended.
func (d *direct) run() {
	for !d.x.Stopped() {
		l, err := d.x.dial(d.node)
		if err == nil {
			d.read(l)
			l.Conn.Close()
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (d *direct) read(l *harness.Link) {
	for !d.x.Stopped() && d.x.Unpaused(func() bool { return d.readOnce(l) }) {
		time.Sleep(max(2*time.Millisecond, d.x.Rest))
	}
}

func (d *direct) readOnce(l *harness.Link) bool {
	var out []byte
	seen := make([]sight, len(d.x.Keys))
	for i, h := range d.x.Keys {
		seen[i] = h.Look()
		out = resp.AppendRequest(out, []byte("GET"), []byte(h.Key))
	}
	if l.Send(out) != nil {
		return false
	}
	s := &Session{X: d.x, name: "reader at " + d.node.ID}
	for i, h := range d.x.Keys {
		reply, err := l.Receive(time.Now().Add(harness.AnswerTime))
		if err != nil {
			return false
		}
		if !isRedirect(reply) {
			s.judgeRead(h, false, seen[i], reply)
		}
	}
	return true
}
