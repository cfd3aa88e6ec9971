package glob

import (
	"bytes"
	"errors"
)

const (
	maxPattern = 4 << 10 // bytes
	maxRun     = 256     // characters between two '*', with other wildcards among them
)

// ErrPattern refuses a pattern that would take too long to match.
var ErrPattern = errors.New("ERR the pattern is too long: at most 4096 bytes, and between two '*' 256 characters " +
	"if there are other wildcards among them")

// Pattern is a pattern with the wildcards of KEYS and SCAN: '*', '?', '[a-z]', '[^a]' and '\' before
// a literal. It is a list of segments, between which any bytes may stand:
//
//	user:*-[0-9]*:x     "user:" at the beginning, then "-[0-9]", ":x" at the end
//
// Every wildcard but '*' takes exactly one byte. So the first place where a segment matches is as
// good as any other, and the key is read only once. Redis's matcher calls itself at each '*', which
// costs exponential time for a pattern like "a*a*a*a*b".
type Pattern struct {
	segments []segment
	size     int // bytes of the shortest key that matches
	length   int // of the pattern
	perByte  int // comparisons that one byte of a key may cost between the first and the last '*'
}

// Compile returns the pattern that text describes, or ErrPattern. It copies text, unless that is too
// long.
func Compile(text []byte) (*Pattern, error) {
	if len(text) > maxPattern {
		return nil, ErrPattern
	}
	text = bytes.Clone(text)
	p := &Pattern{length: len(text)}
	for rest, more := text, true; more; {
		var s segment
		s, rest, more = nextSegment(rest)
		p.size += s.size
		if s.size == 0 && more && len(p.segments) > 0 {
			continue // of several '*' in a row
		}
		p.segments = append(p.segments, s)
	}
	for i := 1; i < len(p.segments)-1; i++ {
		s := &p.segments[i]
		if p.perByte = max(p.perByte, 1); s.plain {
			continue
		}
		if s.size > maxRun {
			return nil, ErrPattern
		}
		if len(s.text) > shortRun {
			s.table = newTable(s)
		}
		p.perByte = max(p.perByte, min(len(s.text), shortRun))
	}
	return p, nil
}

// Match reports whether a key matches the pattern.
func (p *Pattern) Match(key []byte) bool {
	if len(key) < p.size {
		return false
	}
	first, last := &p.segments[0], &p.segments[len(p.segments)-1]
	if first == last {
		return len(key) == p.size && first.is(key)
	}
	end := len(key) - last.size
	if !first.is(key[:first.size]) || !last.is(key[end:]) {
		return false
	}
	key = key[first.size:end]
	for i := 1; i < len(p.segments)-1; i++ {
		end := p.segments[i].find(key)
		if end < 0 {
			return false
		}
		key = key[end:]
	}
	return true
}

// globStep is how many comparisons of bytes take about as long as to look at a key.
const globStep = 4 << 10

// Cost returns the most that matching a key may cost; the unit is the cost of visiting one key. It
// is 1 for a nil pattern.
func (p *Pattern) Cost(key []byte) int {
	if p == nil {
		return 1
	}
	return 1 + p.Comparisons(len(key))/globStep
}

// Comparisons returns how many comparisons of bytes it takes at most to match a key of so many bytes.
func (p *Pattern) Comparisons(size int) int { return p.length + size*p.perByte }
