package exec

import (
	"math/bits"
	"strings"

	"github.com/dunlin-cache/dunlin/internal/command"
)

// BatchBuckets is the length of Counters.Batches. The last bucket counts inputs of 2,048 requests
// and more.
const BatchBuckets = 13

// maxCodes bounds how many different error codes are counted, and maxCode the bytes of one. Servers have fewer and
// shorter ones, but a script returns any.
const maxCodes, maxCode = 32, 32

// otherCode counts the errors without a code that is counted.
const otherCode = "OTHER"

// codeCount counts the replies with one error code.
type codeCount struct {
	Code string
	N    uint64
}

// Counters are the plain numbers of one worker. Only its loop changes them; a scrape visits the
// loops and sums.
type Counters struct {
	Commands [command.NumIDs]uint64
	Failed   [command.NumIDs]uint64 // executed and answered with an error
	Refused  [command.NumIDs]uint64 // answered with an error before they were executed
	Codes    [maxCodes]codeCount    // of error replies
	Executed uint64                 // requests, also those answered with an error
	Internal uint64                 // those of them between members that carry no client's command
	Errors   uint64                 // error replies except redirections
	Hits     uint64
	Misses   uint64
	Moved    uint64 // MOVED
	Waits    uint64 // DUNLINWAIT and TRYAGAIN
	Deferred uint64 // answered later, on pipes

	Connections uint64 // accepted
	Rejected    uint64 // over MaxClients
	SlowReaders uint64 // closed because they did not read
	Starved     uint64 // closed because there was no memory for their buffers

	Invalidations   uint64 // sent to clients that track, and to proxies
	Pushed          uint64 // messages to subscribers
	SlowSubscribers uint64 // closed because they did not read them

	Inputs   uint64 // calls of OnData
	Outputs  uint64 // inputs that produced replies
	BytesIn  uint64
	BytesOut uint64
	Batches  [BatchBuckets]uint64 // inputs by number of requests: 0, 1, 2-3, 4-7...
}

// Lookup counts a read of a key.
func (c *Counters) Lookup(found bool) {
	if found {
		c.Hits++
	} else {
		c.Misses++
	}
}

// Fail counts an error reply to a command. text begins with the error's code, with or without "-"
// in front. id is 0 if the reply concerns no command.
func (c *Counters) Fail(id command.ID, text string) {
	c.Errors++
	c.Failed[id]++
	c.countCode(text)
}

// Reject counts an error reply to a request that was not executed. text is as in Fail.
func (c *Counters) Reject(id command.ID, text string) {
	c.Errors++
	c.Refused[id]++
	c.countCode(text)
}

func (c *Counters) countCode(text string) { c.addCode(codeOf(text), 1) }

// codeOf is the code of an error: its first word, if that looks like one.
func codeOf(text string) string {
	code := strings.TrimPrefix(text, "-")
	for i := range min(len(code), maxCode+1) {
		switch b := code[i]; {
		case b >= 'A' && b <= 'Z', b >= 'a' && b <= 'z', b >= '0' && b <= '9', b == '_':
		case i > 0 && (b == ' ' || b == '\r'):
			return code[:i]
		default:
			return otherCode
		}
	}
	if code == "" || len(code) > maxCode {
		return otherCode
	}
	return code
}

// addCode adds to the figure of a code. The last place is for those that find none.
func (c *Counters) addCode(code string, n uint64) {
	for i := range c.Codes {
		at := &c.Codes[i]
		switch {
		case at.Code == code:
		case at.Code != "":
			continue
		case i == maxCodes-1:
			at.Code = otherCode
		default:
			at.Code = strings.Clone(code)
		}
		at.N += n
		return
	}
	c.Codes[maxCodes-1].N += n
}

// Input counts one call of OnData.
func (c *Counters) Input(bytes, requests int) {
	c.Inputs++
	c.BytesIn += uint64(bytes)
	c.Executed += uint64(requests)
	c.Batches[min(bits.Len(uint(requests)), BatchBuckets-1)]++
}

// Output counts the replies to one input.
func (c *Counters) Output(bytes int) {
	if bytes > 0 {
		c.Outputs++
		c.BytesOut += uint64(bytes)
	}
}

// OfClients returns how many requests came from clients, directly or through proxies.
func (c *Counters) OfClients() uint64 { return c.Executed - c.Internal }

// Since returns what was counted after o, an earlier state of c.
func (c *Counters) Since(o *Counters) Counters {
	later := *c
	for i, n := range o.Commands {
		later.Commands[i] -= n
	}
	for i := range o.Failed {
		later.Failed[i] -= o.Failed[i]
		later.Refused[i] -= o.Refused[i]
	}
	for i := range o.Codes { // codes keep their places
		later.Codes[i].N -= o.Codes[i].N
	}
	for i, n := range o.Batches {
		later.Batches[i] -= n
	}
	later.Executed -= o.Executed
	later.Internal -= o.Internal
	later.Errors -= o.Errors
	later.Hits -= o.Hits
	later.Misses -= o.Misses
	later.Moved -= o.Moved
	later.Waits -= o.Waits
	later.Deferred -= o.Deferred
	later.Connections -= o.Connections
	later.Rejected -= o.Rejected
	later.SlowReaders -= o.SlowReaders
	later.Starved -= o.Starved
	later.Pushed -= o.Pushed
	later.Invalidations -= o.Invalidations
	later.SlowSubscribers -= o.SlowSubscribers
	later.Inputs -= o.Inputs
	later.Outputs -= o.Outputs
	later.BytesIn -= o.BytesIn
	later.BytesOut -= o.BytesOut
	return later
}

// Add adds o's numbers to c's.
func (c *Counters) Add(o *Counters) {
	for i, n := range o.Commands {
		c.Commands[i] += n
	}
	for i := range o.Failed {
		c.Failed[i] += o.Failed[i]
		c.Refused[i] += o.Refused[i]
	}
	for _, code := range o.Codes {
		if code.N > 0 {
			c.addCode(code.Code, code.N)
		}
	}
	for i, n := range o.Batches {
		c.Batches[i] += n
	}
	c.Executed += o.Executed
	c.Internal += o.Internal
	c.Errors += o.Errors
	c.Hits += o.Hits
	c.Misses += o.Misses
	c.Moved += o.Moved
	c.Waits += o.Waits
	c.Deferred += o.Deferred
	c.Connections += o.Connections
	c.Rejected += o.Rejected
	c.SlowReaders += o.SlowReaders
	c.Starved += o.Starved
	c.Pushed += o.Pushed
	c.Invalidations += o.Invalidations
	c.SlowSubscribers += o.SlowSubscribers
	c.Inputs += o.Inputs
	c.Outputs += o.Outputs
	c.BytesIn += o.BytesIn
	c.BytesOut += o.BytesOut
}
