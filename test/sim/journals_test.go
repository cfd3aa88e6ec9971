package sim

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/dunlin-cache/dunlin/internal/member"
)

// Journals are streams that clients follow with XREAD. Reading takes nothing away: a reader names the ID of the last
// entry that it has, or $, and gets the entries behind that, whoever else reads. Whoever finds none waits there with
// its position, and all that wait in front of a new entry are served. What node/data/streams does with positions is
// modelled here; which ID a $ has come to mean is kept by proxy/order itself.

const (
	// lastID is $: the last ID of a journal when the command is first executed.
	lastID = -1
	// readMost is how many entries of a stream a read takes at most.
	readMost = 3
)

// portion is what a read has found in a journal.
type portion struct {
	at  spot
	ids []int
}

// What goes over pipes.
type (
	reading struct { // XREAD
		popping
		behind []int // an ID for each of from
	}
	portions []portion // its reply
	readied  struct {  // the reply to a claim of journals that need not wait
		raw     []byte
		settled settled
	}
)

// settled says which IDs the $ of a command have come to mean.
type settled struct {
	cmd *command
	at  []spot
	ids []int
}

// text is that in the words of package member; nil: there is nothing to say.
func (s settled) text() (ids []byte) {
	for _, id := range s.ids {
		ids = member.AppendSettled(ids, appendID(id))
	}
	return ids
}

// note notes that the proxy has heard of it. A $ means the ID that is heard first.
func (s settled) note() {
	for i, at := range s.at {
		if _, known := s.cmd.settled[at]; !known {
			s.cmd.settled[at] = s.ids[i]
		}
	}
}

func appendID(id int) []byte {
	if id == lastID {
		return []byte(member.LastID)
	}
	return strconv.AppendInt(nil, int64(id), 10)
}

// parseIDs is the inverse of appendID, for all IDs of a request.
func parseIDs(args [][]byte) (ids []int) {
	for _, arg := range args {
		id, err := strconv.Atoi(string(arg))
		if err != nil {
			id = lastID
		}
		ids = append(ids, id)
	}
	return ids
}

// newest is the last ID of a journal; 0: it has none.
func (n *node) newest(at spot) int {
	if list := n.list(at); len(list) > 0 {
		return list[len(list)-1]
	}
	return 0
}

// withEntry is the journal to which a command adds an entry, with that. IDs go by the clock, as those of XADD * do.
func (w *world) withEntry(n *node, c *command) int {
	id := max(int(w.now.Microseconds()), n.newest(c.spot())+1)
	return w.listOf(append(slices.Clone(n.list(c.spot())), id))
}

// settle returns behind which IDs a command reads, and which of them a $ has come to mean now.
func (n *node) settle(c *command, from []spot, ids []int) (behind []int, told settled) {
	told.cmd = c
	for i, at := range from {
		id := ids[i]
		if id == lastID {
			id = n.newest(at)
			told.at, told.ids = append(told.at, at), append(told.ids, id)
		}
		behind = append(behind, id)
	}
	return behind, told
}

// read executes an XREAD, or has it wait.
func (p *nodePipe) read(m reading, late bool) {
	n, k := p.n, m.from[0].place()
	if !p.takes(k, late) {
		p.c.send(1, p.refusal(k))
		return
	}
	behind, told := n.settle(m.cmd, m.from, m.behind)
	switch found := n.w.read(n, m.cmd, m.from, behind, late); {
	case found != nil:
		p.c.send(1, found)
	case m.once:
		p.c.send(1, nothing{})
	default:
		p.waitFor(&m.popping, waiter{behind: behind, settled: told})
	}
}

// claimEntries answers a claim of journals, or has it wait.
func (p *nodePipe) claimEntries(m claiming, late bool) {
	n, now, k := p.n, p.n.w.now, m.from[0].place()
	if !p.takes(k, late) {
		p.c.send(1, p.refusal(k))
		return
	}
	behind, told := n.settle(m.cmd, m.from, m.behind)
	for i, at := range m.from {
		if behind[i] < n.newest(at) {
			p.c.send(1, readied{member.AppendReady(nil, member.Ready{Key: i, IDs: told.text()}), told})
			return
		}
	}
	p.wait(m.cmd, m.from, waiter{
		claims: true, since: now - m.waited, truly: m.cmd.claimed + now - m.sent, behind: behind, settled: told,
	})
}

// serveReaders serves all that wait for entries of a journal, wherever they stand.
func (n *node) serveReaders(at spot, late bool) {
	for _, wt := range slices.Clone(n.queues[at].waiters) {
		i := slices.Index(wt.from, at)
		if wt.behind[i] >= n.newest(at) {
			continue
		}
		n.remove(wt)
		if wt.claims {
			wt.pipe.c.send(1, pushed{wt.token, member.AppendReady(nil, member.Ready{Key: i})})
		} else {
			wt.pipe.c.send(1, pushed{wt.token, n.w.read(n, wt.cmd, wt.from, wt.behind, late)})
		}
		if n.w.oneReader {
			return
		}
	}
}

// read reads journals of one place at a node that believes it serves the place; nil: there is nothing.
func (w *world) read(n *node, c *command, from []spot, behind []int, late bool) (found portions) {
	for i, at := range from {
		list := n.list(at)
		first := slices.IndexFunc(list, func(id int) bool { return id > behind[i] })
		if first >= 0 {
			found = append(found, portion{at, list[first:min(first+readMost, len(list))]})
		}
	}
	if found != nil {
		w.checkServer(n, c, from[0].place(), late)
	}
	return found
}

// checkPortions checks what a reader is told: every entry behind its position, up to the last one that it gets. Of
// entries that are perhaps lost nothing is expected, see tear.
func (w *world) checkPortions(c *command, all portions) {
	for _, p := range all {
		behind, last := c.behind[slices.Index(c.wanted, p.at)], p.ids[len(p.ids)-1]
		if behind == lastID {
			id, known := c.settled[p.at]
			if !known {
				w.violate("%d reads behind the last ID of %d, and nobody has said which that is", c.id, p.at)
			}
			behind = id
		}
		if p.ids[0] <= behind {
			w.violate("%d reads %v of %d behind %d", c.id, p.ids, p.at, behind)
		}
		for _, id := range w.journals[p.at] {
			if behind < id && id < last && !slices.Contains(p.ids, id) && !w.apart() {
				w.violate("%d reads %v of %d behind %d, and misses %d", c.id, p.ids, p.at, behind, id)
			}
		}
	}
}

// appendRead appends an XREAD, or an XREADGROUP. It waits up to a limit in milliseconds, 0 for ever, unless that is
// negative.
func appendRead(words [][]byte, millis int64, keys, ids [][]byte) [][]byte {
	if millis >= 0 {
		words = append(words, []byte("BLOCK"), strconv.AppendInt(nil, millis, 10))
	}
	words = append(words, []byte("STREAMS"))
	return append(append(words, keys...), ids...)
}

// parseRead reads what appendRead wrote behind some words.
func parseRead(args [][]byte) (millis int64, keys, ids [][]byte) {
	millis = -1
	if bytes.Equal(args[0], []byte("BLOCK")) {
		millis, _ = strconv.ParseInt(string(args[1]), 10, 64)
		args = args[2:]
	}
	args = args[1:]
	return millis, args[:len(args)/2], args[len(args)/2:]
}

// newReader is a consumer that follows journals instead.
func newReader(x *proxy) *consumer {
	c := newConsumer(x)
	c.seen = make(map[spot]int)
	return c
}

// follow is the next command of a reader.
func (c *consumer) follow() *command {
	w := c.w
	cmd := &command{client: c.client, kind: read, slept: c.s.x.p.slept, settled: make(map[spot]int)}
	cmd.wanted = []spot{journal(w.rng.IntN(places), 0)}
	switch x := w.rng.Float64(); {
	case x < 0.3: // several of one partition
		cmd.wanted = append(cmd.wanted, journal(cmd.wanted[0].place(), 1))
	case x < 0.7 && !w.alone:
		for i := range 1 + w.rng.IntN(3) {
			cmd.wanted = append(cmd.wanted, journal((cmd.wanted[0].place()+i+1)%places, i%journals))
		}
	}
	for _, at := range cmd.wanted {
		id := lastID
		if w.chance(0.6) {
			id = c.seen[at]
		}
		cmd.behind = append(cmd.behind, id)
	}
	return cmd
}

// reads takes a reply.
func (c *consumer) reads(cmd *command, found portions) {
	c.w.checkPortions(cmd, found)
	for _, p := range found {
		c.seen[p.at] = p.ids[len(p.ids)-1]
	}
}

// misses reports whether there is something in a journal for a command that waits.
func (c *command) misses(at spot, newest int) bool {
	i := slices.Index(c.wanted, at)
	if i < 0 {
		return false
	}
	behind := c.behind[i]
	if behind == lastID {
		id, known := c.settled[at]
		return known && id < newest
	}
	return behind < newest
}
