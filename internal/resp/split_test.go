package resp

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// A splitting returns how many of the remaining bytes the next delivery has.
type splitting struct {
	name string
	next func(left int) int
}

// splittings are the ways in which every case is delivered.
func splittings(seed uint64) []splitting {
	random := rand.New(rand.NewPCG(seed, 1))
	return []splitting{
		{"whole", func(left int) int { return left }},
		{"one byte", func(int) int { return 1 }},
		{"halves", func(left int) int { return (left + 1) / 2 }},
		{"random", func(left int) int { return 1 + random.IntN(min(left, 40)) }},
	}
}

// deliver plays a connection: it hands data out in pieces, each time in a buffer of
// exactly that length and elsewhere in memory, and overwrites the one before, so that a
// reader who kept a view of it reads poison. read is called until it has consumed
// nothing more; at is where in data its buf begins. It returns how much it consumed, or
// less than 0 to stop for good.
func deliver(data []byte, split splitting, read func(at int, buf []byte) int) {
	var buf []byte
	at := 0
	for len(data) > 0 {
		n := split.next(len(data))
		old := buf
		buf = slices.Concat(old, data[:n])
		poison(old)
		data = data[n:]
		for len(buf) > 0 {
			used := read(at, buf)
			if used < 0 {
				return
			}
			if used == 0 {
				break
			}
			buf = buf[used:]
			at += used
		}
	}
}

func poison(buf []byte) {
	for i := range buf {
		buf[i] = 0xdd
	}
}

// oracleStream returns the oracle's verdicts on all requests in data, up to an error or the first
// incomplete request.
func oracleStream(data []byte, l Limits) []verdict {
	var all []verdict
	for len(data) > 0 {
		v := oracleRequest(data, l)
		if v.outcome == NeedMore {
			break
		}
		all = append(all, v)
		if v.outcome == Malformed {
			break
		}
		data = data[v.length:]
	}
	return all
}

// receiver plays the caller of a Parser. Depending on their length it gathers large arguments or
// takes them in pieces; the arguments of a request are the same either way.
type receiver struct {
	p    *Parser
	left int      // bytes of an argument that is being taken in pieces
	args []string // of a request that has such arguments
	used int      // bytes of that request so far

	all []verdict
}

// read is for deliver. needed is called at each NeedMore.
func (r *receiver) read(at int, buf []byte, needed func(at int, buf []byte, need int)) int {
	if r.left > 0 {
		n := min(r.left, len(buf))
		r.args[len(r.args)-1] += string(buf[:n])
		r.left -= n
		r.used += n
		return n
	}
	small, length := r.p.AppendSmall(make([][]byte, 1, 1+MaxSmall), buf)
	if length == 0 {
		checkNoViews(small)
	}
	before := *r.p
	outcome := r.p.Parse(buf)
	if length > 0 && (before.stage != atRequest || outcome != Done || length != r.p.Len() ||
		!slices.EqualFunc(small[1:], r.p.Args(), bytes.Equal)) {
		panic(fmt.Sprintf("AppendSmall finds %q in %d bytes, Parse has %v %q in %d",
			small[1:], length, outcome, r.p.Args(), r.p.Len()))
	}
	if outcome == LargeBulk && r.p.Large()%3 == 0 {
		r.p.Gather()
		outcome = r.p.Parse(buf)
	}
	switch outcome {
	case NeedMore:
		needed(at, buf, r.p.Need())
		return 0
	case Malformed:
		r.all = append(r.all, verdict{outcome: Malformed, err: r.p.Err()})
		return -1
	}
	total := len(r.args) + r.p.Total()
	for _, arg := range r.p.Args() {
		r.args = append(r.args, string(arg))
	}
	r.used += r.p.Len()
	if outcome == LargeBulk {
		if total <= len(r.args) {
			panic("fewer arguments are announced than there are")
		}
		r.args = append(r.args, "")
		r.left = r.p.Large()
	} else {
		r.all = append(r.all, verdict{outcome: Done, length: r.used, inline: r.p.Inline(), args: r.args})
		r.args, r.used = nil, 0
	}
	return r.p.Len()
}

// checkNoViews checks that AppendSmall leaves nothing behind if it finds no request.
func checkNoViews(args [][]byte) {
	if len(args) != 1 {
		panic(fmt.Sprintf("AppendSmall appends %q and finds no request", args[1:]))
	}
	for _, arg := range args[:cap(args)] {
		if arg != nil {
			panic(fmt.Sprintf("AppendSmall leaves %q behind", arg))
		}
	}
}

// parseStream returns what a Parser reports about data that is delivered in this splitting. needed
// is called at each NeedMore.
func parseStream(
	p *Parser, data []byte, split splitting, needed func(at int, buf []byte, need int),
) []verdict {
	r := receiver{p: p}
	deliver(data, split, func(at int, buf []byte) int { return r.read(at, buf, needed) })
	return r.all
}

// checkRequests compares Parser and oracle over data in every splitting, and Need with
// both.
func checkRequests(t *testing.T, data []byte, l Limits) {
	t.Helper()
	l = l.resolved()
	want := oracleStream(data, l)
	for _, split := range splittings(uint64(len(data))) {
		var p Parser
		p.SetLimits(l)
		got := parseStream(&p, data, split, func(at int, buf []byte, need int) {
			have := oracleProgress(data[:at+len(buf)], l)
			checkNeed(t, data[at:], buf, need, func(shorter []byte) Outcome {
				if oracleProgress(data[:at+len(shorter)], l) == have {
					return NeedMore
				}
				return Done
			})
		})
		if !slices.EqualFunc(got, want, sameVerdict) {
			t.Fatalf("%s of %.200q:\ngot  %v\nwant %v", split.name, data, got, want)
		}
		checkIdle(t, &p)
	}
}

func sameVerdict(a, b verdict) bool { return fmt.Sprint(a) == fmt.Sprint(b) }

// checkNeed checks that need asks for more than buf, and that one byte less would not suffice. data
// is the stream from buf's beginning on. It checks short inputs only, because the oracle is slow.
func checkNeed(t *testing.T, data, buf []byte, need int, judge func([]byte) Outcome) {
	t.Helper()
	if need <= len(buf) {
		t.Fatalf("Need is %d when %d bytes are there: %.200q", need, len(buf), buf)
	}
	if len(data) > 400 {
		return
	}
	if shorter := data[:min(len(data), need-1)]; judge(shorter) != NeedMore {
		t.Fatalf("Need is %d, but %d bytes are enough: %q", need, len(shorter), shorter)
	}
}

// checkIdle checks that a Parser with nothing to do holds no view of any buffer and no
// long list.
func checkIdle(t *testing.T, p *Parser) {
	t.Helper()
	p.Reset()
	if got := p.Parse(nil); got != NeedMore || p.Need() != 1 || len(p.Args()) != 0 {
		t.Fatalf("an idle parser says %v, need %d, args %q", got, p.Need(), p.Args())
	}
	for i, arg := range p.args[:cap(p.args)] {
		if arg != nil {
			t.Fatalf("an idle parser still holds argument %d: %.40q", i, arg)
		}
	}
	if cap(p.args) > keptArgs || cap(p.spans) > keptArgs || cap(p.words) > keptWords {
		t.Fatalf("an idle parser keeps %d views, %d spans, %d bytes of words",
			cap(p.args), cap(p.spans), cap(p.words))
	}
}

// checkReplies compares Scanner and oracle over data in every splitting.
func checkReplies(t *testing.T, data []byte) {
	t.Helper()
	type extent struct {
		outcome Outcome
		length  int
	}
	var want []extent
	for rest := data; len(rest) > 0; {
		length, outcome := oracleReply(rest)
		if outcome != Done {
			length = 0
		}
		if outcome != NeedMore {
			want = append(want, extent{outcome, length})
		}
		if outcome != Done {
			break
		}
		rest = rest[length:]
	}
	for _, split := range splittings(uint64(len(data))) {
		var s Scanner
		var got []extent
		deliver(data, split, func(at int, buf []byte) int {
			switch outcome := s.Scan(buf); outcome {
			case NeedMore:
				checkNeed(t, data[at:], buf, s.Need(), func(shorter []byte) Outcome {
					_, outcome := oracleReply(shorter)
					return outcome
				})
				return 0
			case Malformed:
				got = append(got, extent{Malformed, 0})
				return -1
			default:
				got = append(got, extent{Done, s.Len()})
				return s.Len()
			}
		})
		if !slices.Equal(got, want) {
			t.Fatalf("%s of %.200q:\ngot  %v\nwant %v", split.name, data, got, want)
		}
	}
}
