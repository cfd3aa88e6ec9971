package chaos

import (
	"fmt"
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
	var keys [2][]*History
	for _, h := range d.x.Keys {
		if d.x.reaches(h.Key) {
			keys[databaseOf(h.Key)] = append(keys[databaseOf(h.Key)], h)
		}
	}
	return d.readDatabase(l, 0, keys[0]) && (len(keys[1]) == 0 || d.readDatabase(l, 1, keys[1]))
}

func (d *direct) readDatabase(l *harness.Link, database int, keys []*History) bool {
	out := fmt.Appendf(nil, "SELECT %d\r\n", database)
	seen := make([]sight, len(keys))
	for i, h := range keys {
		seen[i] = h.Look()
		out = resp.AppendRequest(out, []byte("GET"), []byte(h.Key))
	}
	if l.Send(out) != nil {
		return false
	}
	// A node that has just started may know no level yet, and refuse.
	if reply, err := l.Receive(time.Now().Add(harness.AnswerTime)); err != nil || string(reply) != "+OK\r\n" {
		return false
	}
	s := &Session{X: d.x, name: "reader at " + d.node.ID}
	for i, h := range keys {
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
