package sim

import (
	"slices"
	"time"
)

// client is a client of one proxy. It writes growing values to its own keys. It increments and
// reads the keys of all clients.
type client struct {
	w       *world
	s       *session
	next    map[[2]int]int   // own keys: the next value
	sets    map[[3]int]uint8 // own keys and values of SETs: the database that these named
	own     [][2]int
	pairs   []int // places whose pair of keys is its own
	open    int
	stopped bool
	failed  int
	replied int
	newest  [places]int // id of its newest command that was executed on each
}

func newClient(x *proxy, own [][2]int, pairs []int) *client {
	c := &client{w: x.w, own: own, pairs: pairs, next: make(map[[2]int]int), sets: make(map[[3]int]uint8)}
	c.s = newSession(x, c)
	return c
}

const pipelined = 8

// burst sends some commands at once.
func (c *client) burst() {
	if c.stopped {
		return
	}
	w := c.w
	for i := w.rng.IntN(pipelined / 2); i >= 0 && c.open < pipelined; i-- {
		c.send(c.command())
	}
	pause := w.between(time.Millisecond, 60*time.Millisecond)
	if w.busy {
		pause = w.between(100*time.Microsecond, 5*time.Millisecond)
	}
	if w.chance(0.1) {
		pause *= 10
	}
	w.after(nil, pause, c.burst)
}

func (c *client) command() *command {
	w := c.w
	cmd := &command{client: c, place: w.rng.IntN(places), key: w.rng.IntN(elements)}
	own := c.own
	if w.narrow {
		cmd.place = 0
		own = slices.DeleteFunc(slices.Clone(own), func(at [2]int) bool { return at[0] != 0 })
	}
	switch x := w.rng.Float64(); {
	case x < 0.45 && len(own) > 0:
		at := own[w.rng.IntN(len(own))]
		c.next[at]++
		cmd.kind, cmd.place, cmd.key, cmd.value = set, at[0], at[1], c.next[at]
		cmd.large = w.chance(0.1)
	case x < 0.60:
		cmd.kind, cmd.key = incr, counted
	case x < 0.605:
		cmd.kind = flushAll
	case x < 0.63:
		cmd.kind = scan
	case x < 0.70 && len(c.pairs) > 0 && !w.narrow:
		cmd.kind, cmd.place, cmd.key = both, c.pairs[w.rng.IntN(len(c.pairs))], pair
		at := [2]int{cmd.place, pair}
		c.next[at]++
		cmd.value = c.next[at]
	default:
		cmd.kind = get
	}
	return cmd
}

func (c *client) send(cmd *command) {
	w := c.w
	w.ids++
	cmd.id = w.ids
	c.open++
	if cmd.kind == set {
		c.sets[[3]int{cmd.place, cmd.key, cmd.value}] = databaseOf(cmd.id)
	}
	w.begins(cmd)
	c.s.input = append(c.s.input, cmd)
	w.after(c.s.x.p, w.between(0, 500*time.Microsecond), c.s.take)
}

// answered takes the reply to the oldest command. One that failed may still be executed.
func (c *client) answered(cmd *command, reply any) {
	c.open--
	if _, no := reply.(failed); no {
		c.failed++
		return
	}
	c.replied++
	c.w.ends(cmd, reply)
}
