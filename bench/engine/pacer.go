package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/dunlin-cache/dunlin/bench/histogram"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/ring"
)

// pacer is one thread that issues commands by a schedule.
type pacer struct {
	rig             *rig
	number          int
	interval        time.Duration
	clock           runClock
	all, own        histogram.Histogram
	r               *rand.PCG
	key, value, dst []byte
	inserted        uint32
	gets, hits      int
	err             error
	_               [64]byte // so that pacers share no cache line
}

const (
	// If two readings of the clock are this far apart, another program may have had the processor.
	noticeable = 50 * time.Microsecond
)

// run issues commands until the end of the run.
func (p *pacer) run() error {
	p.clock.begin = time.Now()
	for i := 0; ; i++ {
		intended := time.Duration(i) * p.interval
		if intended > p.rig.q.Length {
			return errors.Join(p.err, p.clock.err)
		}
		begin, _ := p.clock.read()
		for begin < intended {
			begin, _ = p.clock.read()
		}
		if !p.rig.q.Control {
			p.command(begin)
		}
		end, lost := p.clock.read()
		p.all.Add(end-intended, 1)
		p.own.Add(end-begin-lost, 1)
	}
}

// command does the next command.
func (p *pacer) command(at time.Duration) {
	now := p.rig.begin.UnixMilli() + at.Milliseconds()
	dice := p.r.Uint64()
	fresh := p.rig.fresh
	head := uint32(p.rig.q.Keys) + p.inserted*uint32(p.rig.pacers) // about the number of keys that all pacers have written
	isNew := dice&1023 < fresh
	if isNew {
		p.inserted++
		putKey(p.key, head+uint32(p.number))
	} else {
		putKey(p.key, head-1-uint32(dice>>32)%min(p.rig.window, head))
	}
	t := p.rig.e.Lock(ring.PartitionOf(p.key), now)
	switch kind := dice & 1023; {
	case isNew:
		p.set(t, 64, 0)
	case kind < fresh+40:
		p.set(t, 32+int(dice>>10)&63, 0)
	case kind < fresh+80:
		p.set(t, 64, now+1000+int64(dice>>10&0xfff))
	case kind < fresh+100:
		t.Delete(p.key)
	default:
		p.gets++
		if item, ok := t.Find(p.key); ok {
			p.hits++
			p.dst = append(p.dst[:0], item.Value()...)
		}
	}
	t.Unlock()
}

func (p *pacer) set(t engine.Txn, n int, expireAt int64) {
	if err := t.Set(p.key, p.value[:n], engine.TypeString, expireAt); err != nil && p.err == nil {
		p.err = fmt.Errorf("a SET fails: %w", err)
	}
}

// runClock is a clock of one goroutine that also knows how long other programs had its processor.
// The goroutine is not locked to its thread: otherwise Go takes it off the thread every 10 ms and
// needs another thread to resume it.
type runClock struct {
	begin  time.Time
	last   time.Duration
	thread int
	waited time.Duration // of the thread, at the last read
	buf    [128]byte
	err    error
}

// read returns the time since the beginning, and for how much of the time since the last read other
// programs had the processor.
func (c *runClock) read() (now, lost time.Duration) {
	now = time.Since(c.begin)
	if now-c.last > noticeable {
		thread, waited := syscall.Gettid(), c.waitedNow()
		if thread == c.thread {
			lost = max(0, min(waited-c.waited, now-c.last))
		}
		c.thread, c.waited = thread, waited
	}
	c.last = now
	return now, lost
}

// waitedNow returns how long the thread has waited for a processor. It does not allocate.
func (c *runClock) waitedNow() (waited time.Duration) {
	fd, err := syscall.Open("/proc/thread-self/schedstat", syscall.O_RDONLY, 0)
	if err != nil {
		c.err = fmt.Errorf("cannot tell how long a thread waited: %w", err)
		return 0
	}
	n, _ := syscall.Read(fd, c.buf[:]) // if it fails, the result is 0
	_ = syscall.Close(fd)
	field := 0
	for _, b := range c.buf[:max(n, 0)] {
		switch {
		case b < '0' || b > '9':
			field++
		case field == 1:
			waited = waited*10 + time.Duration(b-'0')
		}
	}
	return waited
}
