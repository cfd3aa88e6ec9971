package proxy

import (
	"container/list"
	"crypto/sha1"
	"encoding/hex"
	"sync"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// The proxy keeps the bodies of scripts that its clients have sent: those of SCRIPT LOAD and of EVAL. EVALSHA of
// one of them goes to its node as EVAL, in MULTI too:
//
//	client   EVALSHA sha 1 k ─▶ proxy ─▶ EVAL body 1 k ─▶ node
//
// So no node answers NOSCRIPT to a script that a client has given to this proxy, whichever node owns the keys now,
// and however often the request is sent again. Naming the script to nodes that know it would save them the bytes of
// its body; but they would have to be told ahead on each pipe, and again wherever a request goes that came back.

const (
	// maxScripts is what bodies take together at most, in bytes.
	maxScripts = 64 << 20
	// maxNamed is how long an EVALSHA is at most to go as EVAL: it is copied. A longer one goes as it came.
	maxNamed = 1 << 20
	// scriptCost is what a body takes beside its bytes.
	scriptCost = 400
)

// scripts are the bodies that a proxy keeps, for all of its loops.
type scripts struct {
	budget netloop.Budget // nil: they are only counted

	mu     sync.Mutex
	bySHA  map[[sha1.Size]byte]*list.Element
	byBody map[string]*list.Element
	order  list.List // of *body; the first was used last
	size   int64
}

type body struct {
	text string
	sha  [sha1.Size]byte
}

func (b *body) cost() int64 { return int64(len(b.text)) + scriptCost }

// get appends the body with that name to dst. It reports false if the proxy does not keep it.
func (s *scripts) get(dst, name []byte) ([]byte, bool) {
	var sha [sha1.Size]byte
	if len(name) != 2*len(sha) {
		return dst, false
	}
	if _, err := hex.Decode(sha[:], name); err != nil {
		return dst, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.bySHA[sha]
	if e == nil {
		return dst, false
	}
	s.order.MoveToFront(e)
	return append(dst, e.Value.(*body).text...), true
}

// keep keeps a body, which it copies, if there is memory for it.
func (s *scripts) keep(text []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.byBody[string(text)]; e != nil {
		s.order.MoveToFront(e)
		return
	}
	if len(text) > maxNamed {
		return
	}
	b := &body{text: string(text), sha: sha1.Sum(text)}
	for s.order.Len() > 0 && s.size+b.cost() > maxScripts {
		s.forget(s.order.Back())
	}
	for s.budget != nil && !s.budget.Charge(b.cost()) {
		if s.order.Len() == 0 {
			return
		}
		s.forget(s.order.Back())
	}
	if s.bySHA == nil {
		s.bySHA, s.byBody = make(map[[sha1.Size]byte]*list.Element), make(map[string]*list.Element)
	}
	e := s.order.PushFront(b)
	s.bySHA[b.sha], s.byBody[b.text] = e, e
	s.size += b.cost()
}

func (s *scripts) forget(e *list.Element) {
	b := s.order.Remove(e).(*body)
	delete(s.bySHA, b.sha)
	delete(s.byBody, b.text)
	if s.size -= b.cost(); s.budget != nil {
		s.budget.Refund(b.cost())
	}
}

// flush forgets all bodies.
func (s *scripts) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.order.Len() > 0 {
		s.forget(s.order.Back())
	}
}

// isScript reports whether a command executes a script.
func isScript(cmd *command.Command) bool { return cmd.Flags&command.NoMandatoryKeys != 0 }

// withBody returns what is sent in place of a command that executes a script: EVALSHA of a script that the proxy keeps
// becomes EVAL. The body of EVAL is kept. args and raw are valid until the next command.
func (s *client) withBody(cmd *command.Command, args [][]byte, raw []byte) (*command.Command, [][]byte, []byte) {
	p := s.w.proxy
	switch cmd.ID {
	case command.Eval, command.EvalRO:
		p.scripts.keep(args[1])
		return cmd, args, raw
	case command.EvalSha, command.EvalShaRO:
	default:
		return cmd, args, raw
	}
	room := &s.w.script
	var ok bool
	if room.body, ok = p.scripts.get(room.body[:0], args[1]); !ok || len(raw) > maxNamed {
		return cmd, args, raw
	}
	room.words = append(room.words[:0], args...)
	if room.words[0] = evalName; cmd.ID == command.EvalShaRO {
		room.words[0] = evalROName
	}
	room.words[1] = room.body
	room.raw = resp.AppendRequest(room.raw[:0], room.words...)
	return command.Lookup(room.words[0]), room.words, room.raw
}

var evalName, evalROName = []byte("EVAL"), []byte("EVAL_RO")

// scriptRoom is where a worker makes EVAL of EVALSHA. It is valid until the next one.
type scriptRoom struct {
	body, raw []byte
	words     [][]byte
}

// end bounds what is kept of it.
func (r *scriptRoom) end() {
	clear(r.words)
	if cap(r.raw) > largeRequest {
		*r = scriptRoom{}
	}
}

// mayScript reports whether the cluster executes scripts. Otherwise it answers an error.
func (s *client) mayScript() bool {
	if s.w.order.Level() >= ring.ScriptsLevel {
		return true
	}
	s.answer(errScripts)
	return false
}

// The rest is wide.Host's.

// KeepScript keeps a body.
func (h wideHost) KeepScript(text []byte) { h.p.scripts.keep(text) }

// HasScript reports whether the proxy keeps a body.
func (h wideHost) HasScript(sha []byte) bool {
	_, ok := h.p.scripts.get(nil, sha)
	return ok
}

// FlushScripts forgets all bodies.
func (h wideHost) FlushScripts() { h.p.scripts.flush() }
