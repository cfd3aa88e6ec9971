package load

import (
	"bytes"
	"fmt"
)

// maxLine bounds a line of a reply: an error text, or a count.
const maxLine = 4096

// reader finds where replies end. Between two reads of a connection it keeps at most a line.
type reader struct {
	protocol Protocol
	want     int    // bytes of every value
	line     []byte // the beginning of a line
	skip     int    // bytes of a value and its CRLF that have not arrived
	elements int    // of an array that have not arrived
}

// feed reads the bytes that have arrived, and returns how many replies end in them and how many of
// these are values.
func (r *reader) feed(b []byte) (replies, values int, err error) {
	for len(b) > 0 {
		if r.skip > 0 {
			n := min(r.skip, len(b))
			b, r.skip = b[n:], r.skip-n
			if r.skip == 0 && r.protocol == RESP && r.elementEnds() {
				replies++
			}
			continue
		}
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			if len(r.line)+len(b) > maxLine {
				return replies, values, fmt.Errorf("a line of a reply is longer than %d bytes", maxLine)
			}
			r.line = append(r.line, b...)
			return replies, values, nil
		}
		line := b[:i+1]
		if len(r.line) > 0 {
			r.line = append(r.line, line...)
			line, r.line = r.line, r.line[:0]
		}
		b = b[i+1:]
		ended, isValue, err := r.readLine(line)
		if err != nil {
			return replies, values, err
		}
		if ended {
			replies++
		}
		if isValue {
			values++
		}
	}
	return replies, values, nil
}

// readLine reports whether a reply ends with the line, and whether a value follows it.
func (r *reader) readLine(line []byte) (ended, isValue bool, err error) {
	if len(line) < 3 || line[len(line)-2] != '\r' {
		return false, false, fmt.Errorf("a reply has the line %q", line)
	}
	text := line[:len(line)-2]
	if r.protocol == Memcached {
		return r.readMemcached(text)
	}
	switch text[0] {
	case '+', ':':
		return r.elementEnds(), false, nil
	case '$':
		if string(text) == "$-1" {
			return r.elementEnds(), false, nil
		}
		return false, true, r.expect(text[1:])
	case '*':
		n, ok := number(text[1:])
		if !ok || n == 0 || r.elements > 0 {
			break
		}
		r.elements = n
		return false, false, nil
	}
	return false, false, fmt.Errorf("the reply is %q", text)
}

func (r *reader) readMemcached(text []byte) (ended, isValue bool, err error) {
	switch {
	case string(text) == "END" || string(text) == "STORED":
		return true, false, nil
	case bytes.HasPrefix(text, []byte("VALUE ")):
		return false, true, r.expect(text[bytes.LastIndexByte(text, ' ')+1:])
	}
	return false, false, fmt.Errorf("the reply is %q", text)
}

// expect prepares for a value, which must have the length of all values.
func (r *reader) expect(length []byte) error {
	n, ok := number(length)
	if !ok || n != r.want {
		return fmt.Errorf("a value has %q bytes: want %d", length, r.want)
	}
	r.skip = n + len("\r\n")
	return nil
}

// elementEnds reports whether a reply ends with the element.
func (r *reader) elementEnds() bool {
	if r.elements > 0 {
		r.elements--
	}
	return r.elements == 0
}

func number(text []byte) (n int, ok bool) {
	for _, b := range text {
		if b < '0' || b > '9' || n > 1<<30 {
			return 0, false
		}
		n = n*10 + int(b-'0')
	}
	return n, len(text) > 0
}
