package node

import (
	"testing"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/conversation"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/internal/session"
)

// TestEveryBuiltCommandIsAnswered holds the list of handlers to the table of
// commands: what is Built is ours or the session's, and never both.
func TestEveryBuiltCommandIsAnswered(t *testing.T) {
	server := session.NewServer(session.Options{})
	check := func(c *command.Command) {
		args := make([][]byte, max(c.Arity, -c.Arity))
		for i := range args {
			args[i] = []byte("1")
		}
		_, _, sessions := server.Do(server.NewState("", "", 0), c, args, nil)
		_, _, subscribes := session.SubscriptionOf(c.ID)
		ours := handlers[c.ID] != nil || subscribes || c.ID == command.Exec || c.ID == command.Watch // transaction.go
		switch {
		case !c.Built && ours:
			t.Errorf("%s has a handler, but is not built", c.Name)
		case c.Built && ours && sessions:
			t.Errorf("%s has two handlers", c.Name)
		case c.Built && !ours && !sessions:
			t.Errorf("%s is built, but nobody executes it", c.Name)
		}
	}
	for _, c := range command.All() {
		if c.Subs == nil {
			check(c)
		}
		for _, sub := range c.Subs {
			check(sub)
		}
	}
	for _, sub := range command.ByID(command.Dunlin).Subs {
		if sub.Built && internalHandlers[sub.ID] == nil {
			t.Errorf("%s is built, but has no handler", sub.Name)
		}
	}
}

// TestOneReplyEach executes every command on keys with as few arguments as it
// takes: each must answer once, whatever it thinks of them.
func TestOneReplyEach(t *testing.T) {
	n := startNode(t)
	c := dial(t, n.Addr())
	for id := range handlers {
		row := command.ByID(id)
		args := [][]byte{[]byte(row.Name)}
		for len(args) < max(row.Arity, -row.Arity) {
			args = append(args, []byte("1"))
		}
		c.sendArgs(args...)
		c.sendRaw(resp.AppendRequest(nil, []byte("ECHO"), []byte(row.Name)))
		c.next()
		if got := c.next(); got != conversation.Quote([]byte(row.Name)) {
			t.Fatalf("after %s, ECHO answers %s: it did not answer once", row.Name, got)
		}
	}
}
