package node

import (
	"math/bits"
	"strings"

	"github.com/dunlin-cache/dunlin/internal/command"
)

// batchBuckets is the number of BatchSizes: the last one is for 2048 and more.
const batchBuckets = 13

// maxCodes bounds the different codes of errors that are told apart; there are fewer.
const maxCodes = 24

// codeCount is how often a code was answered.
type codeCount struct {
	code string
	n    uint64
}

// counters are a worker's: plain numbers, changed on its loop only, and summed
// over the loops when somebody asks.
type counters struct {
	commands [command.NumIDs]uint64
	failed   [command.NumIDs]uint64 // answered with an error
	refused  [command.NumIDs]uint64 // refused before they were executed
	codes    [maxCodes]codeCount    // of error replies
	executed uint64                 // requests, also those answered with an error
	errors   uint64                 // error replies, redirections apart
	hits     uint64
	misses   uint64
	moved    uint64 // MOVED
	waits    uint64 // DUNLINWAIT and TRYAGAIN

	connections uint64 // accepted
	rejected    uint64 // over MaxClients
	slowReaders uint64 // closed because they did not read
	starved     uint64 // closed because there was no memory for their buffers

	inputs   uint64 // calls of OnData
	outputs  uint64 // those that had something to answer
	bytesIn  uint64
	bytesOut uint64
	batches  [batchBuckets]uint64 // inputs by their requests: 0, 1, 2-3, 4-7...
}

// lookup counts a read of a key.
func (c *counters) lookup(found bool) {
	if found {
		c.hits++
	} else {
		c.misses++
	}
}

// fail counts an error reply, given its text or all of it, to a command; 0 is none in particular.
func (c *counters) fail(id command.ID, text string) {
	c.errors++
	c.failed[id]++
	c.countCode(text)
}

// reject counts an error reply to a request that was not executed.
func (c *counters) reject(id command.ID, text string) {
	c.errors++
	c.refused[id]++
	c.countCode(text)
}

func (c *counters) countCode(text string) {
	code, _, _ := strings.Cut(strings.TrimPrefix(text, "-"), " ")
	if code = strings.TrimSuffix(code, "\r\n"); code != "" {
		c.addCode(code, 1)
	}
}

func (c *counters) addCode(code string, n uint64) {
	for i := range c.codes {
		switch at := &c.codes[i]; at.code {
		case "":
			at.code = strings.Clone(code)
			fallthrough
		case code:
			at.n += n
			return
		}
	}
}

// input counts one call of OnData.
func (c *counters) input(bytes, requests int) {
	c.inputs++
	c.bytesIn += uint64(bytes)
	c.executed += uint64(requests)
	c.batches[min(bits.Len(uint(requests)), batchBuckets-1)]++
}

// output counts the replies to one input.
func (c *counters) output(bytes int) {
	if bytes > 0 {
		c.outputs++
		c.bytesOut += uint64(bytes)
	}
}

// add adds o's numbers to c's.
func (c *counters) add(o *counters) {
	for i, n := range o.commands {
		c.commands[i] += n
	}
	for i := range o.failed {
		c.failed[i] += o.failed[i]
		c.refused[i] += o.refused[i]
	}
	for _, code := range o.codes {
		if code.n > 0 {
			c.addCode(code.code, code.n)
		}
	}
	for i, n := range o.batches {
		c.batches[i] += n
	}
	c.executed += o.executed
	c.errors += o.errors
	c.hits += o.hits
	c.misses += o.misses
	c.moved += o.moved
	c.waits += o.waits
	c.connections += o.connections
	c.rejected += o.rejected
	c.slowReaders += o.slowReaders
	c.starved += o.starved
	c.inputs += o.inputs
	c.outputs += o.outputs
	c.bytesIn += o.bytesIn
	c.bytesOut += o.bytesOut
}

// rateSamples times samplePeriod is the time over which the rate is taken.
const rateSamples = 16

// rateWindow tells how fast a counter has grown of late.
type rateWindow struct {
	samples [rateSamples]uint64
	next    int
	filled  int
}

// sample is called every samplePeriod.
func (w *rateWindow) sample(total uint64) {
	w.samples[w.next] = total
	w.next = (w.next + 1) % rateSamples
	w.filled = min(w.filled+1, rateSamples)
}

// perSecond returns the growth between the oldest and the newest sample.
func (w *rateWindow) perSecond() float64 {
	if w.filled < 2 {
		return 0
	}
	newest := w.samples[(w.next+rateSamples-1)%rateSamples]
	oldest := w.samples[(w.next+rateSamples-w.filled)%rateSamples]
	if newest < oldest {
		return 0 // the counters were reset in between
	}
	return float64(newest-oldest) / (float64(w.filled-1) * samplePeriod.Seconds())
}

// sample is a timer of the worker.
func (w *worker) sample() {
	w.rate.sample(w.count.executed)
	w.hot.fade(w.loop.Now())
	w.heap.Store(w.account.Other())
	if w.loop == w.node.workers[0].loop {
		w.node.notePeak(w.node.engine.Used())
	}
}
