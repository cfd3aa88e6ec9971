package sim

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/proxy/order"
	"github.com/dunlin-cache/dunlin/ring"
)

// Blocking commands at a proxy: order.Claims themselves, and around them what claims.go,
// blocking.go and returns.go of package proxy do.

// tags are hash tags, by the partitions of the keys that have them.
var tags = sync.OnceValue(func() (tags [ring.Partitions]string) {
	for i, missing := 0, len(tags); missing > 0; i++ {
		tag := strconv.Itoa(i)
		if at := &tags[ring.PartitionOf([]byte(tag))]; *at == "" {
			*at = tag
			missing--
		}
	}
	return tags
})

// keyOf names a list in a request of a command.
func (w *world) keyOf(at spot, id int) []byte {
	return []byte("{" + tags()[w.tracked[at.place()]] + "}" + strconv.Itoa(id) + "," + strconv.Itoa(at.key()))
}

// parseKeys is the inverse of keyOf, for the keys of one request.
func (w *world) parseKeys(keys [][]byte) (all []spot, id int) {
	for _, key := range keys {
		_, text, _ := strings.Cut(string(key), "}")
		number, list, _ := strings.Cut(text, ",")
		id, _ = strconv.Atoi(number)
		which, _ := strconv.Atoi(list)
		all = append(all, spotOf(w.place(ring.PartitionOf(key)), which-elements))
	}
	return all, id
}

// block starts a blocking command. False: it must wait.
func (s *session) block(c *command) bool {
	m, now := s.x.machine, s.x.w.now
	if s.Outstanding() > 0 {
		return false
	}
	s.begin(c)
	s.waits, s.ids = c, nil
	for _, id := range c.behind {
		s.ids = append(s.ids, appendID(id))
	}
	if inOne(c.wanted) {
		m.Enter(&s.Session, common)
		c.blocked = now
		s.Block(uint64(c.id), c.limit, now)
		s.pop(c.wanted, c.limit, true)
	} else {
		want := member.Claim{Kind: member.List}
		switch {
		case c.kind == read:
			want.Kind, want.IDs = member.Stream, s.ids
		case c.reads():
			want.Kind, want.Group, want.MinIdle = member.Group, []byte("g"), member.NoIdle
		}
		for _, at := range c.wanted {
			want.Keys = append(want.Keys, s.x.w.keyOf(at, c.id))
		}
		c.claimed = now
		s.claims = m.NewClaims(&s.Session, uint64(c.id), databaseOf(c.id), ring.PartitionOf, want, c.limit)
		s.claims.Begin(common, now)
	}
	s.x.act()
	return true
}

// inOne reports whether lists all lie in one place.
func inOne(all []spot) bool {
	return !slices.ContainsFunc(all, func(at spot) bool { return at.place() != all[0].place() })
}

// reads reports whether the command is an XREADGROUP or an XREAD, and not a BLPOP.
func (c *command) reads() bool { return c.kind == read || c.wanted[0].isStream() }

// pop submits a BLPOP, an XREADGROUP or an XREAD of lists of one place for the command that waits, up to a limit, 0 for
// ever. What reads waits only if blocks is true.
func (s *session) pop(from []spot, limit time.Duration, blocks bool) {
	x := s.x
	var keys, ids [][]byte
	for _, at := range from {
		keys, ids = append(keys, x.w.keyOf(at, s.waits.id)), append(ids, []byte(">"))
	}
	millis := int64(-1)
	if blocks {
		millis = (limit + time.Millisecond - 1).Milliseconds()
	}
	var words [][]byte
	switch {
	case !s.waits.reads():
		words = append([][]byte{[]byte("BLPOP")}, keys...)
		words = append(words, strconv.AppendFloat(nil, limit.Seconds(), 'f', 6, 64))
	case s.waits.kind == read:
		for i, at := range from {
			ids[i] = s.ids[slices.Index(s.waits.wanted, at)]
		}
		words = appendRead([][]byte{[]byte(read.String()), []byte("COUNT"), []byte("3")}, millis, keys, ids)
	default:
		words = appendRead([][]byte{[]byte("XREADGROUP"), []byte("GROUP"), []byte("g"), []byte("c")}, millis, keys, ids)
	}
	s.parts++
	raw := resp.AppendRequest(nil, words...)
	r := order.Request{Session: &s.Session, Seq: uint64(s.waits.id), Origin: originOf(s.waits, x.w.tracked[from[0].place()])}
	p, ok := x.machine.Submit(&s.Session, r, raw, x.w.now)
	if !ok {
		panic("BUG: a pipe is full")
	}
	if p != nil {
		x.write(p)
	}
}

// claimed does what the session's claims want done, unless they are over.
func (s *session) claimed(a order.Action) {
	x, claims := s.x, s.claims
	if claims == nil || claims != a.Claims {
		return
	}
	switch a.Kind {
	case order.ClaimPop:
		s.waits.pops = true
		places := claims.AppendPopped(nil)
		claims.Pop(common)
		s.waits.blocked = x.w.now
		s.Block(uint64(s.waits.id), time.Millisecond, x.w.now)
		for _, i := range places { // several if it reads
			s.pop(s.waits.wanted[i:i+1], time.Millisecond, false)
		}
		claims.Popped()
	case order.ClaimArm:
		s.timer++
		timer := s.timer
		if after, ok := claims.Due(x.w.now); ok {
			x.w.after(x.p, after, func() {
				if s.timer == timer && s.claims == claims {
					claims.Tick(x.w.now)
					x.act()
				}
			})
		}
	case order.ClaimEnd:
		c := s.waits
		s.endClaims()
		if a.Reply == nil {
			s.deliver(c, nothing{})
		} else {
			s.deliver(c, failed{})
		}
	default: // nobody looks at who waits
	}
}

func (s *session) endClaims() {
	if s.claims != nil {
		s.waits.over = true
		s.claims.End()
		s.claims = nil
	}
}

// waited takes a reply for the command that waits. goesOn: it waits on, or nobody wants the reply.
func (s *session) waited(reply any) (_ any, goesOn bool) {
	x, c := s.x, s.waits
	m, has := reply.(popped)
	found, reads := reply.(portions)
	if s.parts > 0 {
		s.parts--
	}
	if s.gone {
		if s.parts == 0 {
			s.waits = nil
		}
		switch {
		case has && c.reads(): // it is pending for a consumer
			x.w.arrives(c, m, false)
		case has:
			s.giveBack(c, m)
		}
		return nil, true
	}
	if has {
		x.w.arrives(c, m, false)
	}
	if before, more := s.got.(portions); more && reads {
		reply = append(slices.Clone(before), found...)
	}
	if _, no := reply.(failed); no || s.got == nil || (has || reads) && s.got != (failed{}) {
		s.got = reply
	}
	if s.parts > 0 {
		return nil, true
	}
	reply, s.got = s.got, nil
	switch reply.(type) {
	case nothing:
		if s.claims != nil && !c.woken {
			s.claims.GoOn(common, x.w.now)
			x.act()
			return nil, true
		}
	case canceled:
		reply = nothing{}
	}
	s.endClaims()
	s.waits = nil
	x.act()
	return reply, false
}

// unblock is CLIENT UNBLOCK.
func (s *session) unblock() {
	c := s.waits
	if c == nil || c.woken {
		return
	}
	c.woken = true
	if s.claims != nil && !s.claims.IsPopping() {
		s.endClaims()
		s.deliver(c, nothing{})
	} else {
		s.x.machine.CancelWait(&s.Session)
	}
	s.x.act()
}

// vanish is the end of the client.
func (s *session) vanish() {
	m := s.x.machine
	s.gone, s.input = true, nil
	s.Close()
	s.endClaims()
	if s.Waits() {
		m.CancelWait(&s.Session)
	}
	m.CancelDeferred(&s.Session)
	s.x.act()
}

// giveBack returns what was popped for a client that is gone, by a session of its own.
func (s *session) giveBack(c *command, m popped) {
	w := s.x.w
	w.arrives(c, m, true)
	if w.noReturns {
		return
	}
	w.ids++
	back := &command{id: w.ids, kind: push, place: m.at.place(), key: m.at.key(), value: m.elements[0], front: true, client: c.client}
	r := newSession(s.x, returner{w})
	r.input = append(r.input, back)
	r.take()
}

// returner is who hears of what is returned.
type returner struct{ w *world }

func (r returner) answered(back *command, reply any) {
	if _, no := reply.(failed); no {
		delete(r.w.elements, back.value) // perhaps it is in its list
	}
}
