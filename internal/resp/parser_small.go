package resp

import "encoding/binary"

// The header "*d\r\n" of one digit, as four bytes read at once.
const (
	shortArray  = uint32('*') | uint32('\r')<<16 | uint32('\n')<<24
	shortDigit  = uint32(0xff) << 8
	shortHeader = 4 // bytes
)

// MaxSmall is the most arguments of a request that AppendSmall reads: the most that one digit can
// count.
const MaxSmall = 9

// parseSmall reads a request of one to nine arguments that is completely in buf, as nearly all
// requests to a cache are. If buf contains anything else, it returns false and has changed only
// what begin sets again. It writes the views at once, whereas the general path collects spans
// first: that halves the time for GET and SET.
func (p *Parser) parseSmall(buf []byte) bool {
	if c := cap(p.args); c < fewArgs || c > keptArgs {
		p.args = make([][]byte, 0, fewArgs)
	}
	args, length := p.appendSmall(p.args[:0], buf)
	if length == 0 {
		return false
	}
	if len(p.args) > len(args) {
		clear(p.args[len(args):])
	}
	p.args = args
	p.length, p.count, p.inline = length, len(args), false
	return true
}

// AppendSmall is for callers that look at several requests before they act on the first. If a
// request of one to nine arguments is complete at the start of buf, AppendSmall appends views of
// its arguments to dst, which must have room for MaxSmall, and returns the request's length in
// bytes. Otherwise, and in the middle of a request, length is 0, and Parse must be called. The
// Parser does not change.
func (p *Parser) AppendSmall(dst [][]byte, buf []byte) (args [][]byte, length int) {
	if p.stage != atRequest {
		return dst, 0
	}
	return p.appendSmall(dst, buf)
}

// appendSmall leaves no views behind in dst if length is 0.
func (p *Parser) appendSmall(dst [][]byte, buf []byte) (args [][]byte, length int) {
	if len(buf) < shortHeader {
		return dst, 0
	}
	head := binary.LittleEndian.Uint32(buf)
	count := int(head>>8&0xff) - '0'
	if head&^shortDigit != shortArray || count < 1 || count > min(MaxSmall, p.limits.MaxArgs) {
		return dst, 0
	}
	args = dst[:len(dst)+count]
	added := args[len(dst):]
	pos := shortHeader
	for i := range added {
		start, end := smallBulk(buf, pos)
		if end == 0 || end-start > p.small {
			clear(added[:i])
			return dst, 0
		}
		added[i] = buf[start:end:end]
		pos = end + 2
	}
	if pos > p.limits.MaxRequest {
		clear(added)
		return dst, 0
	}
	return args, pos
}

// smallBulk returns where the argument whose header is at pos starts and ends. end is 0 if the
// argument is not completely in buf with its CR LF, or its header is not plain.
func smallBulk(buf []byte, pos int) (start, end int) {
	if pos >= len(buf) || buf[pos] != '$' {
		return 0, 0
	}
	size, start := lengthAt(buf, pos)
	end = start + size
	if start == 0 || end+2 > len(buf) || !endsLine(buf, end) {
		return 0, 0
	}
	return start, end
}
