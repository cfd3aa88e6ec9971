package node

import (
	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// What a proxy's blocking command has popped may come back, because its client has gone. The pop has told the proxy a
// token (engine.Txn.Take), by which this node knows what has become of the key since; see internal/member.

// Take has the proxy told by which token it can return what the command at hand pops, see exec.Host. The token of a
// command that is completed later comes in front of that. A command of several runs, which holds its partition like a
// transaction, has none.
func (r *request) Take(t engine.Txn, key []byte) (ahead []byte) {
	p := r.conn.pipe
	if p == nil || !p.returns {
		return nil
	}
	switch token := t.Take(key); {
	case token == 0:
	case r.resumed != nil:
		r.popped = token
	case r.Rest == nil:
		return member.AppendPopped(r.ahead[:0], token)
	}
	return nil
}

// returnPopped: DUNLIN RETURN token command key [NX] element... The command is executed under one lock, with the look
// at the key and the key's expiry.
func returnPopped(r *request) {
	token, words, ok := member.ParseReturn(r.Args[2:])
	c := command.Lookup(words[0])
	if !ok || c == nil || !putsBack(c.ID) || !c.ArityOK(len(words)) || r.conn.pipe == nil {
		r.Fail(errBadReturn)
		return
	}
	key := words[1]
	if r.Database != 0 && !r.admitDatabase(r.Database) || !r.admitSlot(r.SlotOf(key)) {
		return
	}
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	fate, expireAt := t.Returns(key, token)
	if fate == engine.Lost || expireAt != 0 && expireAt <= r.Now {
		r.ReplyInt(0)
		return
	}
	if expireAt != 0 {
		r.BeginUnit(t)
	}
	if r.executeLocked(t, c, words); expireAt != 0 {
		t.SetExpire(key, expireAt)
	}
}

// putsBack reports whether a command puts popped elements back.
func putsBack(id command.ID) bool {
	return id == command.LPush || id == command.RPush || id == command.ZAdd
}

// executeLocked executes such a command under the lock of t, in pieces that each take one run.
func (r *request) executeLocked(t engine.Txn, c *command.Command, words [][]byte) {
	start, head, each := len(r.Out), 2, 1
	if c.ID == command.ZAdd {
		head, each = 3, 2
	}
	all := r.Args
	r.Cmd, r.Transaction, r.InTransaction = c, t, true
	defer func() { r.Args, r.Transaction, r.InTransaction = all, engine.Txn{}, false }()
	for elements := words[min(head, len(words)):]; ; {
		n := inOneRun(elements, each)
		r.Undo(start)
		r.Args = append(words[:head:head], elements[:n]...)
		plans[c.ID].handler(&r.Request)
		if elements = elements[n:]; len(elements) == 0 || resp.IsError(r.Out[start:]) {
			return
		}
	}
}

// returnedAtOnce is how many elements one run puts back.
const returnedAtOnce = 64

// inOneRun returns how many of some words make one run, each of whose elements is so many of them.
func inOneRun(words [][]byte, each int) (n int) {
	for bytes := 0; n < len(words) && n < returnedAtOnce*each && (bytes < exec.RunBytes || n%each > 0); n++ {
		bytes += len(words[n])
	}
	return n
}
