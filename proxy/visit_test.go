package proxy

import (
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/session"
)

// named connects clients with long names that say nothing else.
func (c *rig) named(clients int) {
	c.t.Helper()
	name := strings.Repeat("n", 1000)
	var last *conn
	for range clients {
		last = c.dial()
		last.send("CLIENT SETNAME " + name)
	}
	eventually(c.t, "all have their names", func() bool {
		last.send("CLIENT LIST")
		return strings.Count(last.reply(), " name="+name) == clients
	})
}

func (c *rig) posted() uint64 {
	var all atomic.Uint64
	c.each(func(l *netloop.Loop) { all.Add(l.Stats().Posted) })
	return all.Load()
}

// CLIENT LIST of many sessions takes many turns of the loops, and not one. What it gathers is charged to its session, and
// without memory for it the command fails, but nothing else does.
func TestClientListOfMany(t *testing.T) {
	const clients = 900
	room := &budget{most: 64 << 20}
	c := newCluster(t, 1, func(cfg *Config) { cfg.Buffers = room })
	c.named(clients)
	cl := c.dial()
	before := c.posted()
	cl.send("CLIENT LIST", "PING")
	list := cl.reply()
	if took := c.posted() - before; took < clients/32 {
		t.Errorf("the loops take %d turns for %d clients", took, clients)
	}
	if got := strings.Count(list, " laddr="); got != clients+1 {
		t.Errorf("%d clients are listed, want %d", got, clients+1)
	}
	cl.want("+PONG")
	for _, version := range []string{"3", "2"} {
		cl.send("HELLO "+version, "CLIENT LIST", "GET none")
		cl.reply()
		if got := cl.reply(); strings.Count(got, " laddr=") != clients+1 || !strings.HasPrefix(got, map[string]string{"3": "=", "2": "$"}[version]) {
			t.Errorf("with RESP%s the list is %.50s", version, got)
		}
		cl.reply()
	}
	cl.send("CLIENT REPLY SKIP", "CLIENT LIST", "PING")
	cl.want("+PONG")
	eventually(t, "the memory is free again", func() bool { return c.stats().Buffers < 64<<10 })
	filled := room.most - room.used.Load() - 512<<10
	room.used.Add(filled)
	cl.send("CLIENT LIST", "PING")
	cl.want(strings.TrimSuffix(string(errNoList), "\r\n"), "+PONG")
	room.used.Add(-filled)
	cl.send("CLIENT LIST")
	if got := strings.Count(cl.reply(), " laddr="); got != clients+1 {
		t.Errorf("with memory again, %d clients are listed", got)
	}
	eventually(t, "all memory is free again", func() bool { return c.stats().Buffers < 64<<10 })
}

// Many CLIENT LISTs are made one after the other. Those whose clients have disconnected are not made.
func TestManyClientLists(t *testing.T) {
	c := newCluster(t, 1)
	server := c.proxy.server
	first := session.NewEveryone(session.ActionPause, server.NewState("", "", 0), [][]byte{[]byte("CLIENT"), []byte("UNPAUSE")}, 2)
	server.Visits().Enter(first, func() {})
	visiting := func() int {
		var all atomic.Int64
		c.each(func(l *netloop.Loop) {
			for _, s := range c.proxy.workers[l.Index()].clients {
				if s.visit != nil {
					all.Add(1)
				}
			}
		})
		return int(all.Load())
	}
	var waiting []*conn
	for range 40 {
		cl := c.dial()
		cl.send("CLIENT LIST", "PING")
		waiting = append(waiting, cl)
	}
	eventually(t, "they wait", func() bool { return visiting() == 40 })
	for _, cl := range waiting[:20] {
		_ = cl.Conn.(*net.TCPConn).SetLinger(0)
		cl.Close()
	}
	eventually(t, "those who have gone do not", func() bool { return visiting() == 20 })
	cl := c.dial()
	cl.send("CLIENT UNBLOCK 1", "PING")
	cl.want(":0", "+PONG") // it does not wait
	server.Visits().Leave(first)
	for i, cl := range waiting[20:] {
		if got := strings.Count(cl.reply(), " laddr="); got != 21 {
			t.Errorf("list %d has %d clients", i, got)
		}
		cl.want("+PONG")
	}
}

// KILL closes all sessions that it names, in turns.
func TestClientKillOfMany(t *testing.T) {
	c := newCluster(t, 1)
	const clients = 300
	c.named(clients)
	cl := c.dial()
	before := c.posted()
	cl.send("CLIENT KILL TYPE normal")
	cl.want(fmt.Sprintf(":%d", clients))
	if took := c.posted() - before; took < clients/32 {
		t.Errorf("the loops take %d turns for %d clients", took, clients)
	}
	cl.send("CLIENT LIST")
	if got := strings.Count(cl.reply(), " laddr="); got != 1 {
		t.Errorf("%d clients are left", got)
	}
	cl.send("CLIENT KILL SKIPME no TYPE normal")
	cl.want(":1")
	cl.wantClosed()
}
