package figures

import (
	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// Calls is what INFO commandstats, errorstats and latencystats and LATENCY HISTOGRAM show: the
// figures of one node, or the sum of several.
type Calls struct {
	Commands [command.NumIDs]CommandCalls
	Errors   map[string]int64 // error replies by their codes
}

// CommandCalls has the figures of one command, or of one subcommand.
type CommandCalls struct {
	Calls    int64 // executed
	Failed   int64 // of those, answered with an error
	Rejected int64 // not executed: wrong number of arguments, no authentication
	// Times are of a sample of the calls, or of all calls of a command that is rare and heavy.
	Times *Durations
}

// CountError counts an error reply by its code, the first word.
func (c *Calls) CountError(code string, n int64) {
	if c.Errors == nil {
		c.Errors = make(map[string]int64)
	}
	c.Errors[code] += n
}

// note adds the durations of some calls.
func (c *CommandCalls) note(d *Durations) {
	if c.Times == nil {
		c.Times = &Durations{}
	}
	c.Times.Add(d)
}

// Add adds o's numbers to c's. It does not keep o.
func (c *Calls) Add(o *Calls) {
	for id := range o.Commands {
		from, to := &o.Commands[id], &c.Commands[id]
		to.Calls += from.Calls
		to.Failed += from.Failed
		to.Rejected += from.Rejected
		if from.Times != nil {
			to.note(from.Times)
		}
	}
	for code, n := range o.Errors {
		c.CountError(code, n)
	}
}

// The wire form between members: an array of the errors, code and number in turn, and one array for
// each command that was called: its name, then numbers. It has names because IDs differ between
// versions.

// commandNumbers precede the buckets of a command, which come as pairs of
// number and count.
const commandNumbers = 5

// AppendCalls encodes c.
func AppendCalls(dst []byte, c *Calls) []byte {
	called := 0
	for id := range c.Commands {
		if c.Commands[id].any() {
			called++
		}
	}
	dst = resp.AppendArray(dst, 1+called)
	dst = resp.AppendArray(dst, 2*len(c.Errors))
	for code, n := range c.Errors {
		dst = resp.AppendBulkString(dst, code)
		dst = resp.AppendInt(dst, n)
	}
	for id := range c.Commands {
		if c.Commands[id].any() {
			dst = c.Commands[id].append(dst, command.ByID(command.ID(id)).Name)
		}
	}
	return dst
}

func (c *CommandCalls) any() bool { return c.Calls > 0 || c.Rejected > 0 }

func (c *CommandCalls) append(dst []byte, name string) []byte {
	times := c.Times
	if times == nil {
		times = &Durations{}
	}
	var pairs []byte
	n := 0
	for i, count := range times.Buckets {
		if count > 0 {
			pairs = resp.AppendInt(resp.AppendInt(pairs, int64(i)), count)
			n += 2
		}
	}
	dst = resp.AppendArray(dst, 1+commandNumbers+n)
	dst = resp.AppendBulkString(dst, name)
	for _, number := range [commandNumbers]int64{c.Calls, c.Failed, c.Rejected, times.Count, times.Nanos} {
		dst = resp.AppendInt(dst, number)
	}
	return append(dst, pairs...)
}

// Decode adds the figures that AppendCalls encoded to c. It returns false if reply is malformed. It
// ignores commands that this version does not know.
func (c *Calls) Decode(reply []byte) bool {
	rows, ok := elements(reply)
	if !ok || len(rows) == 0 {
		return false
	}
	codes, ok := elements(rows[0])
	if !ok || len(codes)%2 != 0 {
		return false
	}
	for i := 0; i < len(codes); i += 2 {
		code, ok1 := resp.DecodeBulk(codes[i])
		n, ok2 := resp.DecodeInt(codes[i+1])
		if !ok1 || !ok2 {
			return false
		}
		c.CountError(string(code), n)
	}
	for _, row := range rows[1:] {
		if !c.decodeCommand(row) {
			return false
		}
	}
	return true
}

func (c *Calls) decodeCommand(row []byte) bool {
	fields, ok := elements(row)
	if !ok || len(fields) < 1+commandNumbers || len(fields)%2 != 0 {
		return false
	}
	name, ok := resp.DecodeBulk(fields[0])
	if !ok {
		return false
	}
	numbers := make([]int64, len(fields)-1)
	for i := range numbers {
		if numbers[i], ok = resp.DecodeInt(fields[1+i]); !ok {
			return false
		}
	}
	cmd := command.Shown(name)
	if cmd == nil {
		return true
	}
	d := Durations{Count: numbers[3], Nanos: numbers[4]}
	for pairs := numbers[commandNumbers:]; len(pairs) > 0; pairs = pairs[2:] {
		if pairs[0] < 0 || pairs[0] >= durationBuckets {
			return false
		}
		d.Buckets[pairs[0]] = pairs[1]
	}
	to := &c.Commands[cmd.ID]
	to.Calls += numbers[0]
	to.Failed += numbers[1]
	to.Rejected += numbers[2]
	if d.Count > 0 {
		to.note(&d)
	}
	return true
}

// elements splits an array into its elements, views of reply.
func elements(reply []byte) (list [][]byte, ok bool) {
	n, at, ok := resp.DecodeArray(reply)
	if !ok || n < 0 {
		return nil, false
	}
	var scan resp.Scanner
	for range n {
		if scan.Scan(reply[at:]) != resp.Done {
			return nil, false
		}
		list = append(list, reply[at:at+scan.Len()])
		at += scan.Len()
	}
	return list, true
}
