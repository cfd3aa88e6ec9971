package resp

import (
	"strconv"
)

// Encoders append one reply, or the header of one, to dst and return it grown.
// They copy their other arguments and allocate nothing but dst's growth.

// AppendSimple appends the simple string s. A CR or LF in it becomes a space, so that no text can
// end a reply early and begin another one.
func AppendSimple(dst []byte, s string) []byte {
	dst = append(dst, '+')
	return endLine(append(dst, s...), len(s))
}

// AppendOK appends the simple string OK.
func AppendOK(dst []byte) []byte { return append(dst, "+OK\r\n"...) }

// AppendError appends an error. text begins with its code, such as "ERR". A CR or LF
// in it becomes a space.
func AppendError(dst []byte, text string) []byte {
	dst = append(dst, '-')
	return endLine(append(dst, text...), len(text))
}

// AppendErrorBytes does for a text in bytes what AppendError does for a string.
func AppendErrorBytes(dst, text []byte) []byte {
	dst = append(dst, '-')
	return endLine(append(dst, text...), len(text))
}

// endLine replaces line breaks in the last n bytes of dst by spaces, and ends the line.
func endLine(dst []byte, n int) []byte {
	text := dst[len(dst)-n:]
	for i, c := range text {
		if c == '\r' || c == '\n' {
			text[i] = ' '
		}
	}
	return append(dst, '\r', '\n')
}

// AppendInt appends an integer.
func AppendInt(dst []byte, n int64) []byte {
	if uint64(n) < 10 { // most counts and flags; a quarter of strconv's time
		return append(dst, ':', byte('0'+n), '\r', '\n')
	}
	dst = append(dst, ':')
	dst = strconv.AppendInt(dst, n, 10)
	return append(dst, '\r', '\n')
}

// AppendBulk appends a bulk string, which may hold any bytes.
func AppendBulk(dst, b []byte) []byte {
	dst = appendHeader(dst, '$', len(b))
	dst = append(dst, b...)
	return append(dst, '\r', '\n')
}

// AppendBulkHeader begins a bulk string of n bytes, which the caller appends or sends
// itself, with CR LF behind them.
func AppendBulkHeader(dst []byte, n int) []byte { return appendHeader(dst, '$', n) }

// AppendBulkString does for a string what AppendBulk does for bytes.
func AppendBulkString(dst []byte, s string) []byte {
	dst = appendHeader(dst, '$', len(s))
	dst = append(dst, s...)
	return append(dst, '\r', '\n')
}

// AppendBulkStrings appends each text as a bulk string: the elements of an array, or of a map whose
// keys and values are texts.
func AppendBulkStrings(dst []byte, texts ...string) []byte {
	for _, text := range texts {
		dst = AppendBulkString(dst, text)
	}
	return dst
}

// AppendNull appends null, for a value that does not exist: the null bulk in RESP2.
func AppendNull(dst []byte, v Version) []byte {
	if v == RESP3 {
		return append(dst, "_\r\n"...)
	}
	return append(dst, "$-1\r\n"...)
}

// AppendNullArray appends null for an array that does not exist, for which RESP2 has a null of its
// own.
func AppendNullArray(dst []byte, v Version) []byte {
	if v == RESP3 {
		return append(dst, "_\r\n"...)
	}
	return append(dst, "*-1\r\n"...)
}

// AppendArray appends the header of an array of n elements, which the caller appends
// next.
func AppendArray(dst []byte, n int) []byte { return appendHeader(dst, '*', n) }

// AppendMap appends the header of a map of n pairs: in RESP2 a flat array of 2n.
func AppendMap(dst []byte, v Version, n int) []byte {
	if v == RESP3 {
		return appendHeader(dst, '%', n)
	}
	return appendHeader(dst, '*', 2*n)
}

// AppendSet appends the header of a set of n elements: in RESP2 an array.
func AppendSet(dst []byte, v Version, n int) []byte {
	if v == RESP3 {
		return appendHeader(dst, '~', n)
	}
	return appendHeader(dst, '*', n)
}

// AppendDouble appends f as AppendFloat writes it: in RESP2 as a bulk string.
func AppendDouble(dst []byte, v Version, f float64) []byte {
	var room [32]byte // the longest text is 25 bytes
	text := AppendFloat(room[:0], f)
	if v == RESP3 {
		dst = append(dst, ',')
		dst = append(dst, text...)
		return append(dst, '\r', '\n')
	}
	return AppendBulk(dst, text)
}

// AppendVerbatim appends text meant for people, with its format in three letters ("txt",
// "mkd"): in RESP2 a bulk string without the format.
func AppendVerbatim(dst []byte, v Version, format, text string) []byte {
	dst = AppendVerbatimHeader(dst, v, format, len(text))
	dst = append(dst, text...)
	return append(dst, '\r', '\n')
}

// AppendVerbatimHeader begins what AppendVerbatim appends. The caller appends or sends the n bytes of
// the text itself, with CR LF behind them.
func AppendVerbatimHeader(dst []byte, v Version, format string, n int) []byte {
	if v != RESP3 {
		return AppendBulkHeader(dst, n)
	}
	if len(format) != 3 {
		panic("BUG: a verbatim string's format is " + strconv.Quote(format) + ", not three letters")
	}
	dst = appendHeader(dst, '=', len(format)+1+n)
	dst = append(dst, format...)
	return append(dst, ':')
}

// AppendRequest appends a request of these arguments. Neither the list nor its elements
// are kept.
func AppendRequest(dst []byte, args ...[]byte) []byte {
	dst = AppendArray(dst, len(args))
	for _, arg := range args {
		dst = AppendBulk(dst, arg)
	}
	return dst
}

// appendHeader appends the line of a type byte and a length. n is not negative.
func appendHeader(dst []byte, kind byte, n int) []byte {
	switch {
	case n < 10: // saves the call of strconv for most arguments and arrays
		return append(dst, kind, byte('0'+n), '\r', '\n')
	case n < 100:
		return append(dst, kind, byte('0'+n/10), byte('0'+n%10), '\r', '\n')
	}
	dst = append(dst, kind)
	dst = strconv.AppendInt(dst, int64(n), 10)
	return append(dst, '\r', '\n')
}
