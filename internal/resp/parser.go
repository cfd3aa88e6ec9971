package resp

import (
	"bytes"
	"math"
	"strings"
)

// Redis's texts for broken requests.
const (
	errCount       = "ERR Protocol error: invalid multibulk length"
	errCountUnauth = "ERR Protocol error: unauthenticated multibulk length"
	errCountLine   = "ERR Protocol error: too big mbulk count string"
	errBulk        = "ERR Protocol error: invalid bulk length"
	errBulkUnauth  = "ERR Protocol error: unauthenticated bulk length"
	errBulkLine    = "ERR Protocol error: too big bulk count string"
	errInlineLine  = "ERR Protocol error: too big inline request"
	errQuotes      = "ERR Protocol error: unbalanced quotes in request"
	errCRLF        = "ERR Protocol error: invalid CRLF in request"

	// Here Redis closes the connection without an error.
	errRequest = "ERR Protocol error: too big request"
)

const (
	// keptArgs is the length of the longest list of arguments that a Parser keeps for the next
	// request. It frees longer lists: thousands of idle connections must not each keep the memory
	// of the longest request that they ever sent.
	keptArgs = 128

	// askFirst is how many arguments Limits.Words sees. It is asked about requests of more than
	// keptArgs.
	askFirst = 2

	// fewArgs is how long a list is made at first.
	fewArgs = 10

	// keptWords is a similar limit, in bytes, for the unquoted words of inline requests.
	keptWords = 1 << 10
)

// Parser finds the requests in a buffer that its caller owns, one at a time. The zero value is
// ready and has DefaultLimits. The package comment has its invariants.
type Parser struct {
	limits Limits // all zeros, which nothing passes, until the first slow path

	// args are the arguments of the last finished request. Entries between len
	// and cap are nil, so that an idle Parser pins no buffer by accident.
	args  [][]byte
	spans []span // the arguments so far of an unfinished request

	// words has the inline words that had quotes, which the buffer does not contain in unquoted
	// form. The Parser must not rewrite the buffer, because a caller that cannot serve a request
	// yet may parse it again.
	words []byte

	stage  stage
	inline bool
	gather bool   // announce no further argument of this request
	small  int    // an argument up to this length is within the limit and not announced
	large  int    // length of the argument announced
	passed int    // bytes of the unfinished request that the caller has dropped
	pos    int    // everything before it is finished
	seen   int    // buf[pos:seen] has been searched and holds no end of line
	left   int    // arguments still to come
	most   int    // arguments of this request that are kept; askFirst: Limits.Words will say
	need   int    // no call with fewer bytes makes progress
	length int    // bytes of the last finished request
	count  int    // arguments of the last request, with those that were not kept
	err    string // Redis's text, once malformed
}

// span is the position of an argument in the buffer.
type span struct{ start, end uint32 }

const (
	spanSize = 8
	viewSize = 24 // of a []byte
)

// stage is what a Parser expects next.
type stage uint8

const (
	atRequest stage = iota // the first byte of a request; nothing is known yet
	atCount                // the header of an array, which may have begun
	atBulk                 // the header of an argument, or the argument itself
	atLarge                // an argument that was announced, or its end
	atInline               // an inline line, which may have begun
	atEnd                  // nothing: malformed
)

// SetLimits changes the limits for everything that is not yet parsed.
func (p *Parser) SetLimits(l Limits) {
	p.limits = l.resolved()
	p.small = min(p.limits.MaxBulk, p.limits.LargeBulk-1)
}

// Args returns the arguments of the last request that Parse found. They are read-only views of the
// buffer given to that call and of the Parser's own memory, valid until the caller changes the
// buffer or calls Parse or Reset. Blank lines and empty arrays have no arguments; Redis skips them
// without an answer.
func (p *Parser) Args() [][]byte { return p.args }

// GiveArgs makes the caller the owner of the list that Args returns. The Parser forgets it, and
// neither clears nor uses its memory again.
func (p *Parser) GiveArgs() (args [][]byte) {
	args, p.args = p.args, nil
	return args
}

// Count returns the number of arguments of the last request that Parse found, with those that
// Limits.Words did not want.
func (p *Parser) Count() int { return p.count }

// Len returns the number of bytes of the last request that Parse found.
func (p *Parser) Len() int { return p.length }

// Inline reports whether the last request that Parse found was a line of words. The bytes of such a
// request cannot be forwarded as they are.
func (p *Parser) Inline() bool { return p.inline }

// Need returns, after NeedMore, the least length of buffer with which Parse can make progress. It
// is a hint when to call again. Do not reserve that much: the number comes from the peer.
func (p *Parser) Need() int { return p.need }

// Err returns, after Malformed, the text of Redis's error, without "-" and CR LF.
func (p *Parser) Err() string { return p.err }

// Overhead returns how many bytes the Parser uses for a long request, beyond the little that it may
// always use. For an unfinished request that includes its future views.
func (p *Parser) Overhead() int {
	if cap(p.spans) <= keptArgs && cap(p.args) <= keptArgs && cap(p.words) <= keptWords {
		return 0
	}
	return cap(p.spans)*spanSize + max(cap(p.args), len(p.spans))*viewSize + cap(p.words)
}

// Release drops the views of the last request and the memory that a long request has left. In the
// middle of a request it does nothing.
func (p *Parser) Release() {
	if p.stage == atRequest {
		p.forget()
	}
}

// Reset drops an unfinished request, an error, and all views of the buffer. Limits stay.
func (p *Parser) Reset() {
	p.stage = atRequest
	p.length, p.need, p.err = 0, 0, ""
	p.passed, p.gather = 0, false
	p.forget()
}

// Parse looks for a request at the start of buf. Until it returns Done or Malformed, each call must
// get the same bytes, with or without more behind them, at the same address or another; only
// LargeBulk changes where the buffer begins. Parse only reads buf and keeps nothing of it except
// the views that Args returns. These keep buf in memory until the next call of Parse (with an empty
// buf, if necessary) or Reset.
func (p *Parser) Parse(buf []byte) Outcome {
	if p.stage == atRequest {
		if p.parseSmall(buf) {
			return Done
		}
		p.begin(buf)
	}
	if len(buf) < p.need {
		return NeedMore
	}
	switch p.stage {
	case atInline:
		return p.parseInline(buf)
	case atCount:
		return p.parseArray(buf)
	case atBulk:
		return p.parseBulks(buf)
	case atLarge:
		return p.parseBehindLarge(buf)
	default:
		return Malformed
	}
}

// begin prepares for the request at the start of buf. If buf is empty, nothing begins, and only
// Need is set.
func (p *Parser) begin(buf []byte) {
	p.forget()
	if p.limits.MaxBulk == 0 {
		p.SetLimits(DefaultLimits)
	}
	p.pos, p.seen, p.need = 0, 0, 1
	switch {
	case len(buf) == 0:
	case buf[0] == '*':
		p.stage = atCount
	default:
		p.stage = atInline
	}
}

// forget drops the views of the last request and any list that is too long to keep.
func (p *Parser) forget() {
	clear(p.args)
	p.args, p.spans, p.words = p.args[:0], p.spans[:0], p.words[:0]
	if cap(p.args) > keptArgs {
		p.args = nil
	}
	if cap(p.spans) > keptArgs {
		p.spans = nil
	}
	if cap(p.words) > keptWords {
		p.words = nil
	}
}

// parseArray reads the header of an array of arguments and continues with the arguments.
func (p *Parser) parseArray(buf []byte) Outcome {
	text, outcome := p.headerLine(buf, errCountLine)
	if outcome != Done {
		return outcome
	}
	count, ok := ParseInt(text[1:])
	switch {
	case ok && count <= int64(p.limits.MaxArgs):
	case ok && count <= int64(DefaultLimits.MaxArgs) && p.limits.Unauthenticated:
		return p.fail(errCountUnauth)
	default:
		return p.fail(errCount)
	}
	p.left = int(max(count, 0)) // Redis takes *-1 for an empty array, and any other negative number too
	p.count = p.left
	p.pos, p.seen = len(text)+2, len(text)+2
	p.stage, p.most = atBulk, math.MaxInt
	if p.limits.Words != nil && p.left > keptArgs {
		p.most = askFirst
	}
	return p.parseBulks(buf)
}

// parseBulks reads arguments until none is left or the buffer ends.
func (p *Parser) parseBulks(buf []byte) Outcome {
	for ; p.left > 0; p.left-- {
		start, size, outcome := p.bulkHeader(buf)
		if outcome != Done {
			return outcome
		}
		end := start + size
		if p.passed+end+2 > p.limits.MaxRequest {
			return p.fail(errRequest)
		}
		if size >= p.limits.LargeBulk && !p.gather {
			return p.announce(buf, start, size)
		}
		if end+2 > len(buf) {
			// The next call reads the header again, which is cheaper than remembering it.
			p.need = end + 2
			return NeedMore
		}
		if !endsLine(buf, end) {
			return p.fail(errCRLF)
		}
		p.pos, p.seen = end+2, end+2
		if len(p.spans) != p.most || p.wantsMore(buf) {
			p.spans = append(p.spans, span{uint32(start), uint32(end)})
		}
	}
	return p.finishArray(buf)
}

// wantsMore reports whether the caller wants more arguments than are there. It asks once.
func (p *Parser) wantsMore(buf []byte) bool {
	if p.most != askFirst {
		return false
	}
	first, second := p.spans[0], p.spans[1]
	p.most = max(p.limits.Words(buf[first.start:first.end], buf[second.start:second.end]), askFirst+1)
	return true
}

// bulkHeader reads the header of an argument at pos, and returns where the argument starts and its
// length.
func (p *Parser) bulkHeader(buf []byte) (start, size int, outcome Outcome) {
	if p.pos < len(buf) && buf[p.pos] == '$' {
		n, start := lengthAt(buf, p.pos)
		if start > 0 && n <= p.limits.MaxBulk {
			return start, n, Done
		}
	}
	text, outcome := p.headerLine(buf, errBulkLine)
	if outcome != Done {
		return 0, 0, outcome
	}
	if len(text) == 0 || text[0] != '$' {
		return 0, 0, p.fail(unexpected(buf[p.pos]))
	}
	n, ok := ParseInt(text[1:])
	switch {
	case !ok || n < 0:
		return 0, 0, p.fail(errBulk)
	case n <= int64(p.limits.MaxBulk):
		return p.pos + len(text) + 2, int(n), Done
	case n <= int64(DefaultLimits.MaxBulk) && p.limits.Unauthenticated:
		return 0, 0, p.fail(errBulkUnauth)
	default:
		return 0, 0, p.fail(errBulk)
	}
}

// finishArray turns the spans into views of buf, which does not move any more.
func (p *Parser) finishArray(buf []byte) Outcome {
	p.view(buf)
	p.passed, p.gather = 0, false
	return p.finish(p.pos, false)
}

func (p *Parser) view(buf []byte) {
	if cap(p.args) < len(p.spans) {
		p.args = make([][]byte, 0, max(len(p.spans), fewArgs))
	}
	for _, s := range p.spans {
		p.args = append(p.args, buf[s.start:s.end:s.end])
	}
}

// finish ends a request of length bytes.
func (p *Parser) finish(length int, inline bool) Outcome {
	p.stage, p.length, p.inline = atRequest, length, inline
	if cap(p.spans) > keptArgs {
		p.spans = nil // now, because a small request that follows does not check
	}
	return Done
}

// fail ends the stream.
func (p *Parser) fail(text string) Outcome {
	p.forget()
	p.stage, p.err, p.need = atEnd, text, 0
	return Malformed
}

// headerLine returns the line at pos without its CR LF. A line longer than MaxInline is malformed,
// with the error tooLong.
func (p *Parser) headerLine(buf []byte, tooLong string) ([]byte, Outcome) {
	end, outcome := p.lineEnd(buf, '\r', tooLong)
	switch {
	case outcome != Done:
		return nil, outcome
	case end+1 == len(buf):
		p.need = len(buf) + 1
		return nil, NeedMore
	case buf[end+1] != '\n':
		return nil, p.fail(errCRLF)
	}
	return buf[p.pos:end], Done
}

// lineEnd returns the position of the first byte stop in the line at pos, at most MaxInline bytes
// after pos. It continues where the last search ended. A line with a NUL has no end and eventually
// becomes too long, as in Redis, which searches with C's strchr.
func (p *Parser) lineEnd(buf []byte, stop byte, tooLong string) (int, Outcome) {
	line := buf[p.pos:min(len(buf), p.pos+p.limits.MaxInline+1)]
	from := min(p.seen-p.pos, len(line)) // more only if MaxInline has shrunk
	end := bytes.IndexByte(line[from:], stop)
	if end < 0 {
		end = len(line) - from
	}
	if nul := bytes.IndexByte(line[from:from+end], 0); nul >= 0 {
		p.seen += nul // the next search stops here at once
	} else {
		p.seen += end
		if p.seen < p.pos+len(line) {
			return p.seen, Done
		}
	}
	if len(line) > p.limits.MaxInline {
		return 0, p.fail(tooLong)
	}
	p.need = len(buf) + 1
	return 0, NeedMore
}

// unexpected returns the error text about a byte at the place where an argument should begin.
func unexpected(got byte) string {
	text := "ERR Protocol error: expected '$', got '" + string([]byte{got}) + "'"
	return strings.NewReplacer("\r", " ", "\n", " ").Replace(text)
}
