package sim

import (
	"strconv"
	"strings"
	"sync"

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

// keyOf names the list of a place in a request of a command.
func (w *world) keyOf(k, id int) []byte {
	return []byte("{" + tags()[w.tracked[k]] + "}" + strconv.Itoa(id))
}

// parseKey is the inverse of keyOf.
func (w *world) parseKey(key []byte) (k, id int) {
	_, number, _ := strings.Cut(string(key), "}")
	id, _ = strconv.Atoi(number)
	return w.place(ring.PartitionOf(key)), id
}

// block starts a blocking command. False: it must wait.
func (s *session) block(c *command) bool {
	m, now := s.x.machine, s.x.w.now
	if s.Outstanding() > 0 {
		return false
	}
	s.begin(c)
	s.waits = c
	if len(c.wanted) == 1 {
		m.Enter(&s.Session, common)
		s.pop(c.wanted[0], strconv.FormatFloat(c.limit.Seconds(), 'f', 6, 64))
	} else {
		want := member.Claim{Kind: member.List}
		for _, k := range c.wanted {
			want.Keys = append(want.Keys, s.x.w.keyOf(k, c.id))
		}
		c.claimed = now
		s.claims = m.NewClaims(&s.Session, uint64(c.id), want, c.limit)
		s.claims.Begin(common, now)
	}
	s.x.act()
	return true
}

// pop submits a BLPOP of one place for the command that waits.
func (s *session) pop(k int, limit string) {
	x := s.x
	raw := resp.AppendRequest(nil, []byte("BLPOP"), x.w.keyOf(k, s.waits.id), []byte(limit))
	r := order.Request{Session: &s.Session, Seq: uint64(s.waits.id), Origin: order.Origin{Partition: x.w.tracked[k]}}
	s.Block(x.w.now)
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
		s.pop(s.waits.wanted[places[0]], "0.001")
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
	if s.gone {
		s.waits = nil
		if has {
			s.giveBack(c, m)
		}
		return nil, true
	}
	switch reply.(type) {
	case popped:
		x.w.arrives(c, m, false)
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
	back := &command{id: w.ids, kind: push, place: m.place, key: elements, value: m.element, front: true, client: c.client}
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
