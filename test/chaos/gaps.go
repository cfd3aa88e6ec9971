package chaos

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/dunlin-cache/dunlin/test/harness"
)

// A listener that has missed something is believed if its own proxy, or node, has counted that about then. Each counted
// message excuses one, and each counted gap what was lost of one topic, a channel or the pattern of the notifications:
//
//	lost of channel:1   channel:1   channel:4                 channel:2
//	time ───┴───────────────┴───────────┴──────────────────────────┴────────▶
//	proxy counts                1 gap                                         two topics and one gap: a violation
//	                    ◀── gapTime ──┴── gapTime ──▶                         no gap near channel:2: a violation
//
// Proxies and nodes do not say which topic a gap is of.

const (
	// gapTime is the longest time between a loss and the moment in which its proxy counts it, beside the time for which
	// the machine stands still. A proxy notices a broken pipe after the loss, and may miss more until it listens at the
	// next owner.
	gapTime = harness.AnswerTime
	// countPause is the time between two looks at what a proxy has counted.
	countPause = 200 * time.Millisecond
	// closeTime is the longest time in which losses of several topics each need a gap of their own.
	closeTime = time.Second
)

// counts is what a proxy counted, in order.
type counts struct {
	mu   sync.Mutex
	last counted // the totals of the last look, at its end
	all  []counted
}

// counted is what a proxy counted between two looks.
type counted struct {
	after, until   time.Time
	gaps, messages int
}

// watch looks at what a proxy or a node counts until the clients stop.
func (c *counts) watch(x *Rig, at *harness.Member) {
	for {
		c.look(at)
		select {
		case <-x.stop:
			return
		case <-time.After(countPause):
		}
	}
}

// look notes what a proxy, or a node for its own clients, has counted since the last look. One that does not answer is
// looked at later.
func (c *counts) look(at *harness.Member) {
	gapsTotal, messagesTotal := "dunlin_proxy_pubsub_gaps_total", "dunlin_proxy_lost_messages_total"
	if at.Role == "node" {
		gapsTotal, messagesTotal = "dunlin_node_pubsub_gaps_total", "dunlin_node_relay_lost_messages_total"
	}
	begin := time.Now()
	gaps, err := at.Figure(gapsTotal)
	if err != nil {
		return
	}
	if messages, err := at.Figure(messagesTotal); err == nil {
		c.note(begin, time.Now(), int(gaps), int(messages))
	}
}

// note notes the totals of a look. If they are lower than before, another process counts from 0.
func (c *counts) note(begin, end time.Time, gaps, messages int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.last
	if gaps < before.gaps || messages < before.messages {
		before.gaps, before.messages = 0, 0
	}
	if gaps > before.gaps || messages > before.messages {
		c.all = append(c.all, counted{before.after, end, gaps - before.gaps, messages - before.messages})
	}
	c.last = counted{after: begin, gaps: gaps, messages: messages}
}

// near returns what was counted within gapTime of an interval, or later or earlier by the time for which the machine
// stood still.
func (c *counts) near(x *Rig, from, to time.Time) (gaps, messages int) {
	from, to = from.Add(-gapTime), to.Add(gapTime)
	missed := x.Pulse.Missed(from, to)
	from, to = from.Add(-missed), to.Add(missed)
	c.mu.Lock()
	defer c.mu.Unlock()
	first := sort.Search(len(c.all), func(i int) bool { return !c.all[i].until.Before(from) })
	for _, one := range c.all[first:] {
		if one.after.After(to) {
			break
		}
		gaps, messages = gaps+one.gaps, messages+one.messages
	}
	return gaps, messages
}

// topic returns what a gap is of that excuses the loss of a message: its channel, or the pattern of the notifications.
func (m message) topic() string {
	if strings.Contains(m.channel, ":") {
		return m.channel
	}
	return notePattern
}

// unexcused returns what is wrong about what a listener has lost, as its proxy has counted that: "" for nothing.
func (c *counts) unexcused(x *Rig, lost []lostMessage) (wrong []string) {
	slices.SortFunc(lost, func(a, b lostMessage) int { return a.sent.Compare(b.sent) })
	var rest []lostMessage
	for _, m := range lost {
		if gaps, messages := c.near(x, m.sent, m.acked); gaps+messages == 0 {
			wrong = append(wrong, fmt.Sprintf("%+v, sent at %s, is lost, and its member counts nothing about then", m.message, Clock(m.sent)))
		} else {
			rest = append(rest, m)
		}
	}
	for i := 0; i < len(rest); i++ {
		topics, end, n := map[string]bool{}, rest[i].acked, 0
		for _, m := range rest[i:] {
			if m.sent.Sub(rest[i].sent) > closeTime {
				break
			}
			if m.acked.After(end) {
				end = m.acked
			}
			topics[m.topic()] = true
			n++
		}
		gaps, messages := c.near(x, rest[i].sent, end)
		if len(topics) > gaps+messages || gaps == 0 && n > messages {
			wrong = append(wrong, fmt.Sprintf("%d messages of %d topics that were sent from %s on are lost, and its member counts %d gaps and %d lost messages",
				n, len(topics), Clock(rest[i].sent), gaps, messages))
			i += n - 1 // to be noted once
		}
	}
	return wrong
}
