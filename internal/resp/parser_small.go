package resp

import "encoding/binary"

// The header "*d\r\n" of one digit, as four bytes read at once.
const (
	shortArray  = uint32('*') | uint32('\r')<<16 | uint32('\n')<<24
	shortDigit  = uint32(0xff) << 8
	shortHeader = 4 // bytes
)

// parseSmall reads a request of one to nine arguments that is wholly in buf: nearly all
// requests of a cache are. It answers false when buf holds anything else, and then has
// changed nothing that begin does not put right. It writes the views at once where the
// general path collects spans first: half the time for GET and SET.
func (p *Parser) parseSmall(buf []byte) bool {
	if len(buf) < shortHeader {
		return false
	}
	head := binary.LittleEndian.Uint32(buf)
	count := int(head>>8&0xff) - '0'
	if head&^shortDigit != shortArray || count < 1 || count > min(9, p.limits.MaxArgs) {
		return false
	}
	previous := len(p.args)
	if c := cap(p.args); c < fewArgs || c > keptArgs {
		p.args, previous = make([][]byte, 0, fewArgs), 0
	}
	args := p.args[:max(count, previous)]
	p.args = args // so that forget sees all that is written here
	pos := shortHeader
	for i := range count {
		start, end := smallBulk(buf, pos)
		if end == 0 || end-start > p.small {
			return false
		}
		args[i] = buf[start:end:end]
		pos = end + 2
	}
	if pos > p.limits.MaxRequest {
		return false
	}
	if previous > count {
		clear(args[count:])
		p.args = args[:count]
	}
	p.length, p.inline = pos, false
	return true
}

// smallBulk returns where the argument whose header is at pos starts and ends; end is 0
// if it is not wholly in buf with its CR LF, or is anything but plain.
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
