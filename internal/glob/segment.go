package glob

import "bytes"

// segment is the part of a pattern between two '*'.
type segment struct {
	text  []byte
	size  int    // bytes of a key that it matches
	plain bool   // it has no wildcards
	table *table // nil: bytes are compared one by one
}

// nextSegment returns the first segment of text and what stands behind its '*'. more reports
// whether there is a '*'.
func nextSegment(text []byte) (s segment, rest []byte, more bool) {
	s.plain = true
	i := 0
	for ; i < len(text); s.size++ {
		switch text[i] {
		case '*':
			s.text = text[:i]
			return s, text[i+1:], true
		case '?', '[', '\\':
			s.plain = false
		}
		n, _ := matchOne(text[i:], 0)
		i += n
	}
	s.text = text
	return s, nil, false
}

// is reports whether the segment matches all of b, which has its size.
func (s *segment) is(b []byte) bool {
	if s.plain {
		return bytes.Equal(s.text, b)
	}
	text := s.text
	for _, c := range b {
		n, ok := matchOne(text, c)
		if !ok {
			return false
		}
		text = text[n:]
	}
	return true
}

// find returns the end of the first place in b that the segment matches, or -1.
func (s *segment) find(b []byte) (end int) {
	switch {
	case s.plain:
		at := bytes.Index(b, s.text)
		if at < 0 {
			return -1
		}
		return at + s.size
	case s.table != nil:
		return s.table.find(b)
	}
	for at := 0; at+s.size <= len(b); at++ {
		if s.is(b[at : at+s.size]) {
			return at + s.size
		}
	}
	return -1
}

// matchOne matches c with the first element of text, which is not empty and does not begin with
// '*'. It returns the element's length.
func matchOne(text []byte, c byte) (n int, ok bool) {
	switch text[0] {
	case '?':
		return 1, true
	case '[':
		n, negated := scanClass(text, func(low, high byte) { ok = ok || low <= c && c <= high })
		return n, ok != negated
	case '\\':
		if len(text) >= 2 {
			return 2, text[1] == c
		}
	}
	return 1, text[0] == c
}

// scanClass calls f with the ranges of the class at the beginning of text, and returns the length of
// the class. A class without its ']' reaches to the end of the pattern, and a reversed range is
// turned round, as in Redis.
func scanClass(text []byte, f func(low, high byte)) (n int, negated bool) {
	i := 1
	if negated = i < len(text) && text[i] == '^'; negated {
		i++
	}
	for i < len(text) && text[i] != ']' {
		switch {
		case text[i] == '\\' && i+1 < len(text):
			f(text[i+1], text[i+1])
			i += 2
		case i+2 < len(text) && text[i+1] == '-':
			f(min(text[i], text[i+2]), max(text[i], text[i+2]))
			i += 3
		default:
			f(text[i], text[i])
			i++
		}
	}
	if i < len(text) {
		i++ // the ']'
	}
	return i, negated
}
