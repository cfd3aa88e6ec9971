package resp

import (
	"bytes"
	"math"
)

const (
	// MaxDepth is how deep replies may be nested. No command's reply is deeper than
	// half of it.
	MaxDepth = 32

	// maxReplyBulk is the length of the longest payload of a reply: the longest value.
	maxReplyBulk = 512 << 20

	// maxElements bounds the elements of one aggregate (pairs count twice), so that a
	// count fits 32 bits. It reserves nothing: KEYS may name very many keys.
	maxElements = 1 << 30

	// maxLine is the length of the longest reply of one line. Errors are the longest.
	maxLine = 64 << 10

	// maxNumberLine is the longest line that can hold a length or count, with its type
	// byte.
	maxNumberLine = 1 + len("-9223372036854775808")

	// nullBulk is RESP2's answer for a key that does not exist.
	nullBulk = "$-1\r\n"

	// verbatimPrefix is the length of "txt:" before a verbatim string's text.
	verbatimPrefix = 4
)

// Scanner finds the end of a reply in a buffer that its caller owns. It knows every type of RESP2
// and RESP3. The attributes before a reply are part of it. Streamed strings and aggregates are
// malformed, because nothing here asks for them. The Scanner does not check numbers and texts of
// one-line replies, except that they are one line: a lone CR or LF is malformed, because readers
// disagree where such a line ends. The zero value is ready.
type Scanner struct {
	pos    int  // everything before it is finished
	seen   int  // buf[pos:seen] has been searched and holds no end of line
	need   int  // no call with fewer bytes makes progress; 0 when no reply has begun
	length int  // bytes of the last finished reply
	failed bool // malformed

	// left[d] is how many elements are still to come at depth d. Depth 0 has one, the reply itself.
	// An element is counted off when its header is read. Attributes are not elements and are not
	// counted off.
	left  [MaxDepth + 1]uint32
	depth int
}

// Len returns the number of bytes of the last reply that Scan found.
func (s *Scanner) Len() int { return s.length }

// Need returns, after NeedMore, the least length of buffer with which Scan can make progress.
func (s *Scanner) Need() int { return s.need }

// Reset drops an unfinished reply and an error.
func (s *Scanner) Reset() { s.need, s.length, s.failed = 0, 0, false }

// Scan looks for a reply at the start of buf. Until it returns Done or Malformed, each call must
// get the same bytes, with or without more behind them, at the same address or another. Scan only
// reads buf and does not keep it.
func (s *Scanner) Scan(buf []byte) Outcome {
	if s.need == 0 {
		if n := flatLength(buf); n > 0 {
			s.length = n
			return Done
		}
		s.pos, s.seen, s.need = 0, 0, 1
		s.depth, s.left[0] = 0, 1
	}
	if s.failed {
		return Malformed
	}
	if len(buf) < s.need {
		return NeedMore
	}
	for {
		for s.left[s.depth] == 0 {
			if s.depth == 0 {
				s.length, s.need = s.pos, 0
				return Done
			}
			s.depth--
		}
		if outcome := s.element(buf); outcome != Done {
			return outcome
		}
	}
}

// flatLength returns the length of the reply in buf if it is a whole line or a whole
// bulk of the most usual kinds, else 0.
func flatLength(buf []byte) int {
	if len(buf) < len("_\r\n") {
		return 0
	}
	switch buf[0] {
	case '$':
		n, start := lengthAt(buf, 0)
		end := start + n
		if start > 0 && n <= maxReplyBulk && end+2 <= len(buf) && endsLine(buf, end) {
			return end + 2
		}
		if len(buf) >= len(nullBulk) && string(buf[:len(nullBulk)]) == nullBulk {
			return len(nullBulk)
		}
	case '+', ':', '-', '_', '#', ',':
		// Byte by byte, because most of these lines are too short to be worth a call of IndexByte.
		for i, c := range buf[1 : min(len(buf), maxLine)-1] {
			if c == '\r' && buf[i+2] == '\n' {
				return i + 3
			}
			if c == '\r' || c == '\n' {
				return 0
			}
		}
	}
	return 0
}

// element moves pos over one line, one bulk, or one header of an aggregate.
func (s *Scanner) element(buf []byte) Outcome {
	if s.pos == len(buf) {
		return s.wait(len(buf) + 1)
	}
	switch buf[s.pos] {
	case '+', '-', ':', '_', '#', ',', '(':
		return s.line(buf)
	case '$', '=', '!':
		return s.bulk(buf)
	case '*', '~', '>', '%', '|':
		return s.aggregate(buf)
	default:
		return s.fail()
	}
}

// line moves pos over a reply of one line.
func (s *Scanner) line(buf []byte) Outcome {
	rest := buf[s.pos:min(len(buf), s.pos+maxLine)]
	from := s.seen - s.pos
	end := bytes.IndexByte(rest[from:], '\n')
	if end < 0 {
		s.seen = s.pos + len(rest)
		if len(rest) == maxLine {
			return s.fail()
		}
		return s.wait(len(buf) + 1)
	}
	end += from
	if bytes.IndexByte(rest[:end], '\r') != end-1 {
		return s.fail()
	}
	s.left[s.depth]--
	return s.advance(s.pos + end + 1)
}

// bulk moves pos over a header with a length and its payload.
func (s *Scanner) bulk(buf []byte) Outcome {
	kind := buf[s.pos]
	n, start, outcome := s.number(buf)
	switch {
	case outcome != Done:
		return outcome
	case n == -1 && kind == '$':
		s.left[s.depth]--
		return s.advance(start)
	case n < 0 || n > maxReplyBulk || (kind == '=' && n < verbatimPrefix):
		return s.fail()
	}
	end := start + n
	if end+2 > len(buf) {
		return s.wait(end + 2)
	}
	if !endsLine(buf, end) {
		return s.fail()
	}
	s.left[s.depth]--
	return s.advance(end + 2)
}

// aggregate moves pos over the header of an aggregate and goes one level down, to its
// elements.
func (s *Scanner) aggregate(buf []byte) Outcome {
	kind := buf[s.pos]
	n, start, outcome := s.number(buf)
	if outcome != Done {
		return outcome
	}
	if kind == '%' || kind == '|' {
		n *= 2
	}
	null := n == -1 && kind == '*'
	if (n < 0 && !null) || n > maxElements || (s.depth == MaxDepth && !null) {
		return s.fail()
	}
	if kind != '|' {
		s.left[s.depth]--
	}
	if n > 0 {
		s.depth++
		s.left[s.depth] = uint32(n)
	}
	return s.advance(start)
}

// number reads the header with a number at pos. next is the first byte behind it. For a number
// outside 32 bits it returns a negative one that no caller accepts.
func (s *Scanner) number(buf []byte) (n, next int, outcome Outcome) {
	rest := buf[s.pos:min(len(buf), s.pos+maxNumberLine+2)]
	if n, next := lengthAt(buf, s.pos); next > 0 {
		return n, next, Done
	}
	end := bytes.IndexByte(rest, '\n')
	if end < 0 && len(rest) < maxNumberLine+2 {
		return 0, 0, s.wait(len(buf) + 1)
	}
	if end < 2 || rest[end-1] != '\r' {
		return 0, 0, s.fail()
	}
	value, ok := ParseInt(rest[1 : end-1])
	if !ok {
		return 0, 0, s.fail()
	}
	if value != int64(int32(value)) {
		value = math.MinInt32
	}
	return int(value), s.pos + end + 1, Done
}

// advance goes on at pos.
func (s *Scanner) advance(pos int) Outcome {
	s.pos, s.seen = pos, pos
	return Done
}

// wait stops until the buffer is at least need bytes long.
func (s *Scanner) wait(need int) Outcome {
	s.need = need
	return NeedMore
}

// fail ends the stream.
func (s *Scanner) fail() Outcome {
	s.failed, s.need = true, math.MaxInt // no number of bytes makes progress
	return Malformed
}
