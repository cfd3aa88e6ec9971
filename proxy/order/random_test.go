package order

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// schedule is a Machine between sessions and two nodes, where everything happens in random order:
// requests arrive, replies arrive, timers run down, partitions change hands and tables come.
type schedule struct {
	*Machine
	rng      *rand.Rand
	now      time.Duration
	sessions []*Session
	next     [partitions]uint64           // the newest request for each partition
	executed [sessions][partitions]uint64 // the newest executed
	server   [partitions]int              // -1: between two nodes
	owner    [partitions]int              // by the newest table
	ways     map[*Pipe]*way
	order    []*Pipe
	table    *ring.Table
	fault    string
}

const sessions, partitions = 3, 2

// way is what is on its way over one pipe.
type way struct {
	node    int
	forth   []Request // Session nil: RETRY
	back    []Refusal
	refused []bool // for back: it is a refusal
	latched [partitions]bool
}

func newSchedule(seed uint64, broken *Broken) *schedule {
	h := &schedule{
		Machine: New(Config{Patience: time.Hour, SilentTicks: 5, Broken: broken}), rng: rand.New(rand.NewPCG(seed, 1)),
		now: time.Minute, ways: make(map[*Pipe]*way),
	}
	for range sessions {
		h.sessions = append(h.sessions, &Session{Owner: noOwner{}})
	}
	h.install()
	return h
}

// install has a table come that says who owns what.
func (h *schedule) install() {
	t := &ring.Table{Epoch: 1, Issuer: "test", Nodes: []ring.Member{{ID: "n0", Boot: 1, Addr: "n0"}, {ID: "n1", Boot: 1, Addr: "n1"}}}
	if h.table != nil {
		t.Epoch, t.Ancestors = h.table.Epoch+1, []ring.Version{h.table.Version()}
	}
	for p, node := range h.owner {
		t.Owner[p] = uint16(node)
	}
	h.table = t
	h.Install(t, h.now)
	h.run()
}

func (h *schedule) run() {
	for h.HasActions() {
		for _, a := range h.Actions() {
			switch a.Kind {
			case Dial:
				w := &way{}
				if a.Pipe.Node.Member.ID == "n1" {
					w.node = 1
				}
				h.ways[a.Pipe], h.order = w, append(h.order, a.Pipe)
				h.Connected(a.Pipe, a.Pipe.Attempt())
				h.Opened(a.Pipe, h.now)
			case Write:
				h.write(a.Pipe)
			case Close, Fail, Undone, Proceed, Arm, Refresh:
			}
		}
	}
}

// write sends what was queued.
func (h *schedule) write(p *Pipe) {
	w := h.ways[p]
	for i := p.Inflight() - p.TakeUnsent(); i < p.Inflight(); i++ {
		w.forth = append(w.forth, *p.inflight.at(i))
	}
	p.Wrote(len(p.Queued()))
}

func (h *schedule) submit() {
	s := h.sessions[h.rng.IntN(sessions)]
	if !h.Enter(s, Lane{Kind: member.Common, Version: resp.RESP2}) {
		return
	}
	partition := uint16(h.rng.IntN(partitions))
	h.next[partition]++
	r := Request{Session: s, Seq: h.next[partition], Origin: Origin{Partition: partition}}
	if p, _ := h.Submit(s, r, []byte("GET x\r\n"), h.now); p != nil {
		h.write(p)
	}
	h.run()
}

// execute has the node read the next message of a pipe.
func (h *schedule) execute(w *way) {
	if len(w.forth) == 0 {
		return
	}
	r := w.forth[0]
	w.forth = w.forth[1:]
	var refusal Refusal
	refused := false
	switch p := r.Partition; {
	case r.Session == nil:
		w.latched = [partitions]bool{}
	case w.latched[p] || h.server[p] != w.node:
		refused = true
		if other := h.server[p]; !w.latched[p] && other >= 0 {
			refusal = Refusal{Moved: true, Partition: p, Addr: fmt.Sprintf("n%d", other)}
		}
		w.latched[p] = true
	default:
		for i, s := range h.sessions {
			if s == r.Session {
				if r.Seq < h.executed[i][p] {
					h.fault = fmt.Sprintf("session %d: %d is executed behind %d", i, r.Seq, h.executed[i][p])
				}
				h.executed[i][p] = r.Seq
			}
		}
	}
	w.back, w.refused = append(w.back, refusal), append(w.refused, refused)
}

// answer has the proxy read the next reply of a pipe.
func (h *schedule) answer(p *Pipe, w *way) {
	if len(w.back) == 0 {
		return
	}
	if w.refused[0] {
		h.Refused(p, w.back[0], h.now)
	} else {
		p.Pop()
	}
	w.back, w.refused = w.back[1:], w.refused[1:]
	h.run()
}

// step lets something happen.
func (h *schedule) step() {
	h.now += time.Duration(h.rng.IntN(int(3 * time.Millisecond)))
	switch x := h.rng.IntN(100); {
	case x < 30:
		h.submit()
	case x < 80 && len(h.order) > 0:
		p := h.order[h.rng.IntN(len(h.order))]
		if h.rng.IntN(2) == 0 {
			h.execute(h.ways[p])
		} else {
			h.answer(p, h.ways[p])
		}
	case x < 88:
		h.RetryTimer(h.now)
		h.run()
	case x < 93:
		h.FollowMoves(h.now)
		h.run()
	case x < 97:
		p := h.rng.IntN(partitions)
		if h.server[p] < 0 {
			h.server[p] = h.owner[p]
		} else if h.rng.IntN(4) == 0 {
			h.server[p], h.owner[p] = -1, 1-h.owner[p]
		}
	case x < 98:
		h.install()
	}
}

// firstFault is the first schedule in which a rule was broken.
func firstFault(schedules int, broken *Broken) (seed uint64, fault string) {
	for seed = 1; seed <= uint64(schedules); seed++ {
		h := newSchedule(seed, broken)
		for range 1000 {
			if h.step(); h.fault != "" {
				return seed, h.fault
			}
		}
	}
	return 0, ""
}

// The requests of a session for one partition are executed in their order, whatever is refused and
// moves meanwhile.
func TestOrderInRandomSchedules(t *testing.T) {
	if seed, fault := firstFault(500, nil); fault != "" {
		t.Errorf("schedule %d: %s", seed, fault)
	}
}

// Random schedules show what becomes of rules that are broken.
func TestBrokenRulesInRandomSchedules(t *testing.T) {
	for name, broken := range map[string]Broken{
		"say RETRY while refusals are on their way":           {RetryEarly: true},
		"send held requests before the others have come back": {ResendEarly: true},
		"send past what is held":                              {PassHeld: true},
		"change the route of outstanding requests":            {IgnoreRoutes: true},
	} {
		if seed, fault := firstFault(500, &broken); fault == "" {
			t.Errorf("%s: not noticed in 500 schedules", name)
		} else {
			t.Logf("%s: schedule %d: %s", name, seed, fault)
		}
	}
}
