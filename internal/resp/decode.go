package resp

import "bytes"

// Decoders read one whole reply, as Scanner delimits it, without attributes before it. They read no
// further than they need. The results are views of reply, valid as long as it is unchanged.

// IsError reports whether the reply is an error, simple or bulk.
func IsError(reply []byte) bool {
	return len(reply) > 0 && (reply[0] == '-' || reply[0] == '!')
}

// DecodeInt returns the value of an integer reply.
func DecodeInt(reply []byte) (int64, bool) {
	if len(reply) < 4 || reply[0] != ':' {
		return 0, false
	}
	return ParseInt(reply[1 : len(reply)-2])
}

// DecodeBulk returns the payload of a bulk, simple or verbatim string, of the last without its
// format. It returns false for a null and for every other type.
func DecodeBulk(reply []byte) ([]byte, bool) {
	if len(reply) < 3 {
		return nil, false
	}
	if reply[0] == '+' {
		return reply[1 : len(reply)-2 : len(reply)-2], true
	}
	if reply[0] != '$' && reply[0] != '=' {
		return nil, false
	}
	n, headerLen, ok := decodeHeader(reply)
	if !ok || n < 0 || headerLen+n+2 > len(reply) {
		return nil, false
	}
	payload := reply[headerLen : headerLen+n : headerLen+n]
	if reply[0] == '=' {
		if n < verbatimPrefix {
			return nil, false
		}
		payload = payload[verbatimPrefix:]
	}
	return payload, true
}

// DecodeArray returns the number of elements of an array, set or push, and the length of
// its header, after which they follow. n is -1 for the null array.
func DecodeArray(reply []byte) (n, headerLen int, ok bool) {
	if len(reply) < 4 || (reply[0] != '*' && reply[0] != '~' && reply[0] != '>') {
		return 0, 0, false
	}
	return decodeHeader(reply)
}

// decodeHeader reads the number in the first line of a reply. headerLen counts the line
// with its CR LF.
func decodeHeader(reply []byte) (n, headerLen int, ok bool) {
	if n, next := lengthAt(reply, 0); next > 0 {
		return n, next, true
	}
	if len(reply) >= len("$-1\r\n") && string(reply[1:5]) == "-1\r\n" {
		return -1, 5, true
	}
	// A length of ten digits or more, which the Scanner does not accept.
	return 0, 0, false
}

// DecodeArgument returns the argument of a request whose header begins at buf[at], and where the next
// one begins. A Parser must have found that the request is whole.
func DecodeArgument(buf []byte, at int) (arg []byte, next int) {
	n, start := lengthAt(buf, at)
	if start == 0 { // a number that is not plain
		start = at + bytes.IndexByte(buf[at:], '\n') + 1
		long, _ := ParseInt(buf[at+1 : start-2])
		n = int(long)
	}
	return buf[start : start+n : start+n], start + n + 2
}
