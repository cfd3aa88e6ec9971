package chaos

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// Speakers publish numbered messages on some channels, and listeners at all proxies judge what they hear:
//
//	speaker 2:  PUBLISH channel:1 "2 17" ─▶ :2     every listener hears 15, 16, 17, once and in order
//	speaker 2:  SET note:2:5, DEL note:2:5         every listener hears "set" and then "del" of note:2:5, once
//	speaker 2:  SET note:2:8 PX 500                every listener hears "set", "expire" and "expired", once
//
// Without a fault every listener hears everything. What it does not hear behind a fault, its proxy has counted
// (gaps.go). A listener may also be at a node, which may end (visitor.go).
type hearing struct {
	x *Rig

	mu        sync.Mutex
	era       uint64
	names     []string           // of the listeners at proxies, for whom speakers wait
	visitors  []*visitor         // at nodes
	counts    map[string]*counts // by listener: of its proxy, or node
	said      map[message]*saying
	next      map[message]int64 // by speaker and channel; n is 0
	listeners int
	replaced  int       // proxies that are being replaced, with their listeners
	left      time.Time // when that last began
	forgot    time.Time
	lost      []lostMessage
	heard     int

	speakers sync.WaitGroup
	silent   chan struct{} // closed when all speakers have ended
	ended    time.Time     // when that was
	notes    bool          // nodes publish keyspace notifications
}

// message is the n-th of a speaker on a channel, or a notification of its n-th key.
type message struct {
	speaker int
	channel string // the event of a notification
	n       int64
}

// saying is what is known of a message.
type saying struct {
	sent     time.Time
	acked    time.Time       // zero: it was not executed, as far as is known
	heardBy  map[string]bool // or who were not there
	missedBy map[string]bool // whose loss is noted
}

type lostMessage struct {
	message
	listener    string
	sent, acked time.Time
	judged      bool // by judgeLost
	visit       *visit
}

const (
	channels = 5
	// lastMessages is how long a listener waits for what was said last, beside the time for which the
	// machine stands still.
	lastMessages = 3 * time.Second
)

// listener is a session that is subscribed to all channels.
type listener struct {
	*Session
	g     *hearing
	since time.Time         // when it has subscribed
	era   uint64            // of last
	last  map[message]int64 // by speaker and channel; n is 0
}

// startChannels has sessions publish and listen, as soon as the cluster's level allows that.
func (x *Rig) startChannels() {
	g := &hearing{x: x, counts: map[string]*counts{}, said: map[message]*saying{}, next: map[message]int64{}, silent: make(chan struct{})}
	x.hearing = g
	var listeners []*listener
	for _, p := range x.C.ByRole("proxy") {
		l := &listener{Session: x.NewSession(p, listenerAt(p)), g: g}
		listeners = append(listeners, l)
		g.names = append(g.names, l.name)
		counted := &counts{}
		g.counts[l.name] = counted
		x.Running.Go(func() { counted.watch(x, p) })
	}
	for i, l := range listeners {
		s := x.NewSession(l.at, "speaker at "+l.at.ID)
		x.Running.Go(l.run)
		g.speakers.Add(1)
		x.Running.Go(func() {
			defer g.speakers.Done()
			g.speak(s, i)
		})
	}
	x.Running.Go(func() {
		g.speakers.Wait()
		g.note(func() { g.ended = time.Now() })
		close(g.silent)
	})
}

func (g *hearing) note(what func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	what()
}

// speak publishes until the clients stop.
func (g *hearing) speak(s *Session, speaker int) {
	for note := int64(0); !g.x.Stopped(); {
		ok := g.x.Unpaused(func() bool {
			ready, notes := g.ready()
			if !ready {
				return true
			}
			for range 1 + s.Rng.IntN(4) {
				g.publish(s, speaker, "channel:"+strconv.Itoa(s.Rng.IntN(channels)))
			}
			if notes {
				note++
				if note%expiringOne == 0 {
					g.expire(s, speaker, note)
				} else {
					g.change(s, speaker, "set", note)
				}
				if old := note - noteLife; old > 0 && old%expiringOne > 0 {
					g.change(s, speaker, "del", old)
				}
			}
			return s.Exchange()
		})
		if !ok {
			return
		}
		harness.SleepUpTo(15*time.Millisecond, s.Rng)
	}
}

// ready reports whether all listen, and whether nodes publish notifications. After a division all begins anew.
func (g *hearing) ready() (ready, notes bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if era := g.x.Era.Load(); g.era != era {
		g.era = era
		clear(g.said)
		clear(g.next)
	}
	return !g.x.Divided.Load() && g.replaced == 0 && g.listeners == len(g.names), g.notes
}

// leaves notes that a proxy is about to be replaced, and that its listener leaves. The caller calls back when both
// have come back.
func (g *hearing) leaves() (back func()) {
	g.note(func() {
		g.replaced++
		g.left = time.Now()
	})
	return func() { g.note(func() { g.replaced-- }) }
}

// leftSince reports whether a listener may have left since then, because its proxy was replaced.
func (g *hearing) leftSince(then time.Time) (left bool) {
	g.note(func() { left = g.replaced > 0 || !g.left.Before(then) })
	return left
}

// publish adds a PUBLISH.
func (g *hearing) publish(s *Session, speaker int, channel string) {
	of := message{speaker: speaker, channel: channel}
	m := of
	g.note(func() {
		g.next[of]++
		m.n = g.next[of]
	})
	said := g.says(m)
	s.Add(func(reply []byte) {
		n, ok := resp.DecodeInt(reply)
		if !ok {
			g.x.Outcome(s, reply, "")
			return
		}
		g.note(func() { said.acked = time.Now() })
		if int(n) < g.listenersSince(said.sent) && !g.leftSince(said.sent) && !g.x.hurt(said.sent.Add(-harness.AnswerTime)) {
			g.x.Violate("%s: PUBLISH %s counts %d subscribers, though nothing has happened", s.name, channel, n)
		}
	}, "PUBLISH", channel, fmt.Sprintf("%d %d %d", g.currentEra(), speaker, m.n))
}

// says notes a message that is about to be sent.
func (g *hearing) says(m message) *saying {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := &saying{sent: time.Now(), heardBy: map[string]bool{}, missedBy: map[string]bool{}}
	g.said[m] = s
	for _, v := range g.visitors {
		if v.now == nil {
			s.heardBy[v.name] = true
		}
	}
	g.forgetLocked(time.Now())
	return s
}

// forgetLocked drops what was said long ago, and keeps what was lost of it.
func (g *hearing) forgetLocked(now time.Time) {
	if now.Before(g.forgot.Add(keptTime / 4)) {
		return
	}
	g.forgot = now
	for m, s := range g.said {
		if now.Sub(s.sent) > keptTime {
			g.missedLocked(m, s)
			delete(g.said, m)
		}
	}
}

// missedLocked notes which listeners have not heard a message that was executed.
func (g *hearing) missedLocked(m message, s *saying) {
	for _, l := range g.missersLocked(s) {
		g.lost = append(g.lost, lostMessage{message: m, listener: l, sent: s.sent, acked: s.acked})
		s.missedBy[l] = true
	}
}

// missersLocked returns who have not heard a message that was executed, unless that is noted.
func (g *hearing) missersLocked(s *saying) (all []string) {
	for _, l := range g.namesLocked() {
		if !s.acked.IsZero() && !s.heardBy[l] && !s.missedBy[l] {
			all = append(all, l)
		}
	}
	return all
}

// run listens until everything that was said is heard.
func (l *listener) run() {
	for !l.X.Stopped() && !l.X.Tables.atLevel(ring.ClaimLevel) {
		time.Sleep(harness.PollInterval)
	}
	for !l.ends() {
		if l.listen() == nil {
			break
		}
		l.g.note(func() { l.g.listeners-- })
		time.Sleep(harness.PollInterval) // its proxy is being replaced
	}
	l.Link.Conn.Close()
}

// ends reports whether there is nothing more to hear.
func (l *listener) ends() bool {
	select {
	case <-l.g.silent:
		return true
	default:
		return l.X.Stopped() && l.g.listenersNow() == 0
	}
}

func (g *hearing) listenersNow() (n int) {
	g.note(func() { n = g.listeners })
	return n
}

// listen subscribes and judges what comes. It returns an error if the connection has ended.
func (l *listener) listen() error {
	l.busy.Lock() // until a proxy that is being replaced is there
	link := l.Link
	l.busy.Unlock()
	if err := l.subscribe(link); err != nil {
		return err
	}
	l.g.listens(l)
	return l.hear(link)
}

// subscribe subscribes to everything. Messages may come before the last answer.
func (l *listener) subscribe(link *harness.Link) error {
	l.last = map[message]int64{}
	line := "PSUBSCRIBE " + notePattern + "\r\nSUBSCRIBE"
	for i := range channels {
		line += " channel:" + strconv.Itoa(i)
	}
	if err := link.Send([]byte(line + "\r\n")); err != nil {
		return err
	}
	for answers := 0; answers < 1+channels; {
		frame, err := link.Receive(time.Now().Add(harness.AnswerTime))
		switch {
		case err != nil:
			return err
		case resp.IsError(frame):
			return fmt.Errorf("refused: %.80q", frame)
		case strings.Contains(string(frame[:min(20, len(frame))]), "message\r\n"):
			l.judge(frame)
		default:
			answers++
		}
	}
	return nil
}

// hear judges what comes. It returns an error if the connection has ended.
func (l *listener) hear(link *harness.Link) error {
	var silent time.Time // since when nobody speaks
	for {
		frame, err := link.Receive(time.Now().Add(50 * time.Millisecond))
		switch {
		case err == nil:
			l.judge(frame)
			continue
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return err
		}
		select {
		case <-l.g.silent:
			now := time.Now()
			if silent.IsZero() {
				silent = now
			}
			if l.g.heardAll(l.name) || now.Sub(silent) > lastMessages+l.X.Pulse.Missed(silent, now) {
				return nil
			}
		default:
		}
	}
}

// listens notes that a listener has subscribed: it may miss what was said until now.
func (g *hearing) listens(l *listener) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.listeners++
	g.beginsLocked(l)
}

// beginsLocked has a listener hear what is said from now on.
func (g *hearing) beginsLocked(l *listener) {
	l.since = time.Now()
	for _, s := range g.said {
		s.heardBy[l.name] = true
	}
}

// heardAll reports whether a listener has heard everything.
func (g *hearing) heardAll(name string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for m, s := range g.said {
		if !s.acked.IsZero() && !s.heardBy[name] && !s.missedBy[name] && m.channel != expired {
			return false
		}
	}
	return true
}

// judge judges a message.
func (l *listener) judge(frame []byte) {
	parts, err := flat(frame)
	if err != nil || len(parts) < 3 {
		l.X.Violate("%s: it hears %.80q: %v", l.name, frame, err)
		return
	}
	m, era, err := parseMessage(parts)
	if err == nil && era == l.g.currentEra() {
		if l.era != era { // speakers count anew
			l.era = era
			clear(l.last)
		}
		err = l.g.hears(l, m)
	}
	if err != nil {
		l.X.Violate("%s: %v", l.name, err)
	}
}

func (g *hearing) currentEra() (era uint64) {
	g.note(func() { era = g.era })
	return era
}

// parseMessage reads the parts of a message frame.
func parseMessage(parts [][]byte) (m message, era uint64, err error) {
	channel, payload := string(parts[len(parts)-2]), string(parts[len(parts)-1])
	if key, is := strings.CutPrefix(channel, noteChannel); is {
		m.channel = payload
		_, err = fmt.Sscanf(key, "%d:%d:%d", &era, &m.speaker, &m.n)
	} else {
		m.channel = channel
		_, err = fmt.Sscanf(payload, "%d %d %d", &era, &m.speaker, &m.n)
	}
	if err != nil {
		err = fmt.Errorf("%q on channel %q was never said", payload, channel)
	}
	return m, era, err
}

// hears notes that a listener has heard a message.
func (g *hearing) hears(l *listener, m message) error {
	isNote := !strings.Contains(m.channel, ":")
	g.mu.Lock()
	s := g.said[m]
	twice := s != nil && s.heardBy[l.name] && s.sent.After(l.since)
	set := g.said[message{m.speaker, "set", m.n}]
	early := m.channel != "set" && set != nil && !set.heardBy[l.name]
	if s != nil {
		s.heardBy[l.name] = true
		g.heard++
	}
	g.mu.Unlock()
	of := message{speaker: m.speaker, channel: m.channel}
	switch before := l.last[of]; {
	case s == nil:
		return fmt.Errorf("%+v was never said, or long ago", m)
	case isNote && (twice || early) && !g.x.hurt(s.sent.Add(-harness.AnswerTime)): // else a SET may have been sent again
		return fmt.Errorf("%+v is heard twice, or too early", m)
	case isNote:
	case m.n <= before:
		return fmt.Errorf("%+v is heard behind %d", m, before)
	default:
		l.last[of] = m.n
	}
	return nil
}

// namesLocked returns the names of all listeners.
func (g *hearing) namesLocked() (all []string) {
	all = g.names
	for _, v := range g.visitors {
		all = append(all[:len(all):len(all)], v.name)
	}
	return all
}

func listenerAt(p *harness.Member) string { return "listener at " + p.ID }
