package test

import (
	"fmt"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// mixer pipelines batches of all sorts of commands.
type mixer struct {
	*session
	own     []*history
	counter counter
}

func (x *chaos) newMixer(proxy *member, name string) *mixer {
	key := "count:" + name
	m := &mixer{session: x.newSession(proxy, name)}
	m.counter = counter{key: key, partition: ring.PartitionOf([]byte(key)), sent: time.Now()}
	for i := range keysPerMixer {
		m.own = append(m.own, newHistory(fmt.Sprintf("%s:%d", name, i)))
	}
	return m
}

func (m *mixer) run() {
	if m.rng.IntN(2) == 0 { // half of them speak RESP3: both kinds of pipes
		m.hello(resp.RESP3)
	}
	for !m.x.stopped() {
		if !m.x.unpaused(m.batch) {
			return
		}
		// Not as fast as possible: the machine is to have time for everybody.
		time.Sleep(time.Duration(m.rng.Int64N(int64(m.x.rest))).Truncate(time.Millisecond))
	}
}

// batch sends some commands and judges their replies.
func (m *mixer) batch() bool {
	for range 1 + m.rng.IntN(m.x.batch) {
		m.addOne()
	}
	return m.exchange()
}

// addOne adds a command to the batch, often one on a key that it writes elsewhere.
func (m *mixer) addOne() {
	mine := m.own[m.rng.IntN(len(m.own))]
	switch m.rng.IntN(20) {
	case 0, 1, 2, 3, 4, 5:
		m.set(mine)
	case 6, 7, 8:
		m.get(mine, true)
	case 9, 10, 11, 12:
		m.get(m.x.keys[m.rng.IntN(len(m.x.keys))], false)
	case 13:
		m.set(mine)
		m.set(mine)
		m.get(mine, true)
	case 14:
		m.mset(m.some(m.own))
	case 15:
		m.mget(m.some(m.x.keys))
	case 16, 17:
		m.incr(&m.counter)
	case 18:
		if m.x.deletes {
			m.del(mine)
		}
		m.echo()
	case 19:
		if m.rng.IntN(4) == 0 { // each takes a round over all nodes
			m.dbsize()
		}
		m.echo()
	}
}

// some returns two to six different keys.
func (m *mixer) some(from []*history) []*history {
	chosen := make([]*history, 0, 6)
	for _, i := range m.rng.Perm(len(from))[:2+m.rng.IntN(5)] {
		chosen = append(chosen, from[i])
	}
	return chosen
}
