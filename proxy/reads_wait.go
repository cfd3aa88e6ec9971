package proxy

import (
	"math"
	"slices"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// An XREAD or XREADGROUP that names streams of several slots and waits has claims, as pops have
// (claims.go). Of those that are ready it reads the streams, all at once; the others have said that
// they have nothing. What $ is, the owner of the stream says with its first answer: from then on
// the command means that.

// readLimit returns the limit of an XREAD or XREADGROUP with BLOCK. valid is false if its node refuses its options.
// waits is false if it asks for what is pending, which is answered at once.
func readLimit(cmd *command.Command, args [][]byte) (limit time.Duration, waits, valid bool) {
	at, grouped := command.ReadsOf(args), cmd.ID == command.XReadGroup
	millis, ok := resp.ParseInt(args[at.Block])
	switch {
	case !ok || millis < 0, len(args)-at.First != 2*at.Keys, grouped != (at.Group > 0),
		!grouped && (at.NoAck > 0 || at.MinIdle > 0), !isNumber(args, at.Count, math.MinInt64), !isNumber(args, at.MinIdle, 0):
		return 0, false, false
	}
	for _, id := range at.IDs(args) {
		if grouped && string(id) != ">" {
			return 0, false, true
		}
	}
	return time.Duration(min(millis, maxLimit.Milliseconds())) * time.Millisecond, true, true
}

// isNumber reports whether an option that may be given is a number, and not below least.
func isNumber(args [][]byte, at int, least int64) bool {
	if at == 0 {
		return true
	}
	n, ok := resp.ParseInt(args[at])
	return ok && n >= least
}

// group returns what XREADGROUP says of its group: its name, and the argument of CLAIM.
func (c *claiming) group() (name []byte, minIdle int64) {
	at := command.ReadsOf(c.args)
	if minIdle = member.NoIdle; at.MinIdle > 0 {
		minIdle, _ = resp.ParseInt(c.args[at.MinIdle])
	}
	return c.args[at.Group], minIdle
}

// read reads the streams of the claims that are ready, by their places among the keys: the others have nothing.
func (c *claiming) read(ready []int) {
	at := command.ReadsOf(c.args)
	args := slices.Clone(c.args[:at.First])
	for _, from := range [2]int{at.First, at.First + at.Keys} {
		for _, place := range ready {
			args = append(args, c.args[from+place])
		}
	}
	c.Pop(c.s.laneFor(0, false))
	c.s.Block(c.seq, popLimit, c.s.w.loop.Now())
	c.s.scatter(c.seq, args, 0)
	c.Popped()
}
