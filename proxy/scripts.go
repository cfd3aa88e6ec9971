package proxy

import (
	"container/list"
	"crypto/sha1"
	"encoding/hex"
	"io"
	"sync"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/internal/session"
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
	// maxLoaded is what the bodies of SCRIPT LOAD take at most, and maxSent those of EVAL, in bytes. So clients that
	// send ever new bodies make the proxy forget none that was loaded.
	maxLoaded = 48 << 20
	maxSent   = 16 << 20
	// maxSentBody is the longest body of EVAL that is kept: longer ones would be hashed for too long each time.
	maxSentBody = 64 << 10
	// maxNamed is how long an EVALSHA is at most to go as EVAL: it is copied. A longer one goes as it came.
	maxNamed = 1 << 20
	// scriptCost is what a body takes beside its bytes.
	scriptCost = 400
)

// scripts are the bodies that a proxy keeps, for all of its loops.
type scripts struct {
	budget netloop.Budget // nil: they are only counted

	mu     sync.Mutex
	bodies map[scriptName]*list.Element // of *body, in a list of these two
	loaded bodies                       // by SCRIPT LOAD
	sent   bodies                       // by EVAL only
}

type scriptName [sha1.Size]byte

// bodies are those that the proxy got in one way.
type bodies struct {
	order list.List // of *body; the first was used last
	size  int64     // of them, and of those that are being copied
}

type body struct {
	text   string
	name   scriptName
	loaded bool
}

func costOf(length int) int64 { return int64(length) + scriptCost }

func (b *body) cost() int64 { return costOf(len(b.text)) }

// parseScriptName parses a SHA-1 in hexadecimal digits.
func parseScriptName(text []byte) (name scriptName, ok bool) {
	if len(text) != hex.EncodedLen(len(name)) {
		return name, false
	}
	_, err := hex.Decode(name[:], text)
	return name, err == nil
}

// get returns the body with that name. It reports false if the proxy does not keep it.
func (s *scripts) get(text []byte) (string, bool) {
	name, ok := parseScriptName(text)
	if !ok {
		return "", false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.bodies[name]
	if e == nil {
		return "", false
	}
	b := e.Value.(*body)
	s.listOf(b.loaded).order.MoveToFront(e)
	return b.text, true
}

// has reports whether the proxy keeps the body with that name. That is no use of it.
func (s *scripts) has(text []byte) bool {
	name, ok := parseScriptName(text)
	s.mu.Lock()
	defer s.mu.Unlock()
	return ok && s.bodies[name] != nil
}

// keep keeps a body, which it copies, if there is memory for it. What takes long for a long body is done without
// the lock.
func (s *scripts) keep(text []byte, loaded bool) {
	name := scriptName(sha1.Sum(text))
	if !s.reserve(name, costOf(len(text)), loaded) {
		return
	}
	b := &body{text: string(text), name: name, loaded: loaded}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.use(name, loaded) { // another loop has kept it meanwhile
		s.refund(b)
		return
	}
	if s.bodies == nil {
		s.bodies = make(map[scriptName]*list.Element)
	}
	s.bodies[name] = s.listOf(loaded).order.PushFront(b)
}

// reserve reports whether a body is to be kept, and charges it. It makes room for it.
func (s *scripts) reserve(name scriptName, cost int64, loaded bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.use(name, loaded) {
		return false
	}
	l := s.listOf(loaded)
	s.makeRoom(loaded, cost)
	for s.budget != nil && !s.budget.Charge(cost) {
		if !s.forgetLast(&s.sent) && !s.forgetLast(l) {
			return false
		}
	}
	l.size += cost
	return true
}

// makeRoom forgets what has to go for a body.
func (s *scripts) makeRoom(loaded bool, cost int64) {
	l, limit := s.listOf(loaded), int64(maxSent)
	if loaded {
		limit = maxLoaded
	}
	for l.size+cost > limit && s.forgetLast(l) {
	}
}

// use reports whether there is a body with that name, which is now the last one that was used. One that is loaded
// now counts as such from now on.
func (s *scripts) use(name scriptName, loaded bool) bool {
	e := s.bodies[name]
	if e == nil {
		return false
	}
	b := e.Value.(*body)
	if !loaded || b.loaded {
		s.listOf(b.loaded).order.MoveToFront(e)
		return true
	}
	s.sent.order.Remove(e)
	s.sent.size -= b.cost()
	s.makeRoom(loaded, b.cost())
	b.loaded = true
	s.loaded.size += b.cost()
	s.bodies[name] = s.loaded.order.PushFront(b)
	return true
}

func (s *scripts) listOf(loaded bool) *bodies {
	if loaded {
		return &s.loaded
	}
	return &s.sent
}

// forgetLast forgets the body that was not used for longest. It reports false if there is none.
func (s *scripts) forgetLast(l *bodies) bool {
	e := l.order.Back()
	if e == nil {
		return false
	}
	b := l.order.Remove(e).(*body)
	delete(s.bodies, b.name)
	s.refund(b)
	return true
}

func (s *scripts) refund(b *body) {
	if s.listOf(b.loaded).size -= b.cost(); s.budget != nil {
		s.budget.Refund(b.cost())
	}
}

// flush forgets all bodies.
func (s *scripts) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.forgetLast(&s.sent) || s.forgetLast(&s.loaded) {
	}
}

// script starts or queues a command that executes a script. It reports false if the command must wait.
func (s *client) script(cmd *command.Command, args [][]byte, raw []byte) bool {
	if r := s.mayScript(cmd); r != reached {
		if r == below {
			s.state.FailTransaction()
		}
		return r == below
	}
	switch {
	case s.state.Queues(cmd):
		var in session.Input
		asked := cmd
		if cmd, args, _ = s.withBody(cmd, args, raw); cmd == asked { // all arguments lie in raw
			in = s.takeLong(raw)
		}
		out := s.state.Enqueue(cmd, args, in, s.w.scratch[:0])
		s.w.script.end()
		s.queuesScript = true
		s.chargeOther()
		s.w.keepScratch(out)
		s.answer(out)
		return true
	case !s.mayStartScript():
		return false
	}
	cmd, args, raw = s.withBody(cmd, args, raw)
	defer s.w.script.end()
	if !s.dispatch(cmd, args, raw) {
		return false
	}
	s.startedScript()
	return true
}

// mayScript reaches the level from which on the cluster executes scripts, or has functions if the command is about
// them.
func (s *client) mayScript(cmd *command.Command) reach {
	r := s.reach(ring.ScriptsLevel, errScripts)
	if r == reached && cmd.IsFunction() {
		r = s.reach(ring.FunctionsLevel, errFunctions)
	}
	return r
}

// withBody returns what is sent in place of a command that executes a script: EVALSHA of a script that the proxy keeps
// becomes EVAL. The body of EVAL is kept. args and raw are valid until the next command.
func (s *client) withBody(cmd *command.Command, args [][]byte, raw []byte) (*command.Command, [][]byte, []byte) {
	p := s.w.proxy
	switch cmd.ID {
	case command.Eval, command.EvalRO:
		if len(args[1]) <= maxSentBody {
			p.scripts.keep(args[1], false)
		}
		return cmd, args, raw
	case command.EvalSha, command.EvalShaRO:
	default:
		return cmd, args, raw
	}
	text, ok := p.scripts.get(args[1])
	if !ok || len(raw) > maxNamed {
		return cmd, args, raw
	}
	room := &s.w.script
	room.body = append(room.body[:0], text...)
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

// scriptsAtOnce is how many scripts of one session are on their way: a node defers a script for up to a minute, and
// a pipe, which many sessions share, has room for few deferred requests.
const scriptsAtOnce = 16

// scriptTurns are the last scripts of a session.
type scriptTurns struct {
	behind [scriptsAtOnce]uint64 // the number of the command behind each script; 0: there was none yet
	next   int                   // where the next one goes: the oldest
}

// mayStartScript reports whether so few scripts of the session have no delivered reply that it may start another.
func (s *client) mayStartScript() bool {
	return s.scripts == nil || s.scripts.behind[s.scripts.next] <= s.head
}

// startedScript notes that the last command that was issued is a script, or a transaction with one.
func (s *client) startedScript() {
	t := s.scripts
	if t == nil {
		t = new(scriptTurns)
		s.scripts = t
	}
	t.behind[t.next] = s.tail
	t.next = (t.next + 1) % scriptsAtOnce
}

// goneAfter is how long a script of a client that has finished sending goes on: short ones are answered,
// because `printf … | nc` is a client too.
const goneAfter = 200 * time.Millisecond

// leaveScripts ends the session of a client that has finished sending when one of its scripts takes long. The
// client counts as disconnected, as behind a command that blocks.
func (s *client) leaveScripts() {
	if behind, any := s.oldestScript(); any {
		s.w.loop.After(goneAfter, func() {
			switch {
			case s.isClosed():
			case s.head < behind:
				s.conn.Close(io.EOF)
			default:
				s.leaveScripts()
			}
		})
	}
}

// oldestScript returns the number of the command behind the oldest script that has no delivered reply.
func (s *client) oldestScript() (behind uint64, any bool) {
	t := s.scripts
	if t == nil {
		return 0, false
	}
	for i := range t.behind {
		if behind = t.behind[(t.next+i)%scriptsAtOnce]; behind > s.head {
			return behind, true
		}
	}
	return 0, false
}

// The rest is wide.Host's.

// KeepScript keeps a body of SCRIPT LOAD.
func (h wideHost) KeepScript(text []byte) { h.p.scripts.keep(text, true) }

// HasScript reports whether the proxy keeps a body.
func (h wideHost) HasScript(sha []byte) bool { return h.p.scripts.has(sha) }

// FlushScripts forgets all bodies.
func (h wideHost) FlushScripts() { h.p.scripts.flush() }
