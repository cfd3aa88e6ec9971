package netloop

import (
	"bytes"
	"math"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// busyPoll is how a loop looks for events again and again for a while before it sleeps. What comes
// meanwhile is handled without the system's waking a thread, which takes it 5 to 40 µs.
type busyPoll struct {
	limit  time.Duration // Config.BusyPoll
	window time.Duration // for how long the loop looks now: limit, or less when that was in vain
	places *pollPlaces
	looked atomic.Int64 // nanoseconds in all; written by the loop only
}

// shortestWindow is shorter than what a wake-up takes.
const shortestWindow = 2 * time.Microsecond

// look polls until there is something to do, or the window is over, or other loops need the
// processor. The clock says from when it starts, and is returned as it ends.
func (l *Loop) look(from, timeout time.Duration) (n int, errno unix.Errno, now time.Duration) {
	b := &l.polling
	now = from
	for end := from + min(b.window, timeout); now < end && n == 0 && errno == 0; now = l.clock.now() {
		if !b.places.enough() || l.mail.pending.Load() {
			break
		}
		n, errno = l.poller.waitRaw(l.events, 0)
	}
	b.looked.Add(int64(now - from))
	return n, errno, now
}

// learn adapts the window to how long the loop has waited for its last event. A wait that looking
// saves, or would have saved, opens the window. A longer one halves it, so that a quiet loop sleeps.
func (b *busyPoll) learn(waited time.Duration) {
	if waited <= b.limit {
		b.window = b.limit
	} else if b.window /= 2; b.window < shortestWindow {
		b.window = 0
	}
}

// pollPlaces counts the loops of a group that are awake. Loops look for events only while there is a
// processor for each of these.
type pollPlaces struct {
	most  atomic.Int32 // processors that nobody else uses
	awake atomic.Int32
}

func (p *pollPlaces) enough() bool { return p.awake.Load() <= p.most.Load() }

// placesPeriod is how often the free processors are counted. Until the first count no loop looks.
const placesPeriod = 500 * time.Millisecond

// pollBusily has the loops, which do not run yet, look for events for as long as limit.
func (g *Group) pollBusily(limit time.Duration, processors float64) {
	p := &pollPlaces{}
	p.awake.Store(int32(len(g.loops)))
	for _, l := range g.loops {
		l.polling.limit, l.polling.places = limit, p
	}
	g.running.Go(func() { g.countPlaces(p, processors) })
}

// countPlaces counts the free processors now and then until the group closes.
func (g *Group) countPlaces(p *pollPlaces, processors float64) {
	tick := time.NewTicker(placesPeriod)
	defer tick.Stop()
	loops := make([]loopTimes, len(g.loops))
	last, found := readProcessors(g.clock.now())
	for found {
		select {
		case <-g.stop:
			return
		case <-tick.C:
		}
		var now, d processorTimes
		if now, found = readProcessors(g.clock.now()); !found {
			break
		}
		d = processorTimes{elapsed: now.elapsed - last.elapsed, idle: now.idle - last.idle, own: now.own - last.own}
		last = now
		for i, l := range g.loops {
			before := loops[i]
			loops[i] = l.times()
			d.looked += loops[i].since(before).lookedAlone()
		}
		p.most.Store(int32(d.free(processors)))
	}
	p.most.Store(0)
	g.log.Warn("the system does not say how many processors are idle: loops do not poll busily")
}

// processorTimes is what processors did in the time elapsed.
type processorTimes struct {
	elapsed time.Duration
	idle    time.Duration // all processors of the machine
	own     time.Duration // what this process used
	looked  time.Duration // of that, what its loops looked for events
}

// free returns how many processors would be idle if the loops did not look for events. processors is
// how many this process may use.
func (d processorTimes) free(processors float64) int {
	if d.elapsed <= 0 {
		return 0
	}
	share := func(t time.Duration) float64 { return float64(t) / float64(d.elapsed) }
	machine := share(d.idle + d.looked)
	allowed := processors - share(max(0, d.own-d.looked))
	// The system's own work, and its clock of 10 ms, take a little of a processor that is free.
	const tolerance = 0.1
	return int(max(0, min(machine, allowed, math.MaxInt32)+tolerance))
}

// lookedAlone returns for how long the loop looked for events on a processor: another thread may have
// needed it meanwhile.
func (t loopTimes) lookedAlone() time.Duration {
	if t.ran+t.wanted > 0 {
		return min(t.looked, t.ran)
	}
	return t.looked
}

// readProcessors reads what the machine's processors and this process have done until now.
func readProcessors(now time.Duration) (t processorTimes, found bool) {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return t, false
	}
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return t, false
	}
	idle, found := idleTime(stat)
	return processorTimes{elapsed: now, idle: idle, own: time.Duration(u.Utime.Nano() + u.Stime.Nano())}, found
}

// idleTime returns for how long the processors were idle, or waited for disks, by the text of
// /proc/stat.
func idleTime(stat []byte) (idle time.Duration, found bool) {
	line, _, _ := bytes.Cut(stat, []byte("\n"))
	fields := bytes.Fields(line) // cpu, user, nice, system, idle, iowait, ... in hundredths of a second
	if len(fields) < 6 || string(fields[0]) != "cpu" {
		return 0, false
	}
	for _, field := range fields[4:6] {
		n, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return 0, false
		}
		idle += time.Duration(n) * 10 * time.Millisecond
	}
	return idle, true
}
