package glob

import "bytes"

// Match reports whether s matches pattern with the wildcards of KEYS and
// SCAN: '*', '?', '[a-z]', '[^a]' and '\' before a literal. Both are only read.
//
// Redis's matcher calls itself at each '*', so that a pattern like
// "a*a*a*a*b" costs exponential time. Every wildcard but '*' eats exactly one
// byte, which allows the greedy form: on a mismatch only the last '*' seen is
// tried again, one byte further. Plain text between two '*', or behind the last, is
// searched for, which is linear. What else stands there costs at most its length
// × len(s): callers that match many keys must bound that, see Cost.
func Match(pattern, s []byte) bool {
	p, i := 0, 0
	star, mark := -1, 0 // place behind the last '*', and where in s its match ends
	for i < len(s) {
		if p < len(pattern) && pattern[p] == '*' {
			p++
			star, mark = p, i
			text := pattern[p : p+plainLength(pattern[p:])]
			switch {
			case p+len(text) == len(pattern):
				return bytes.HasSuffix(s[i:], text)
			case pattern[p+len(text)] == '*':
				at := bytes.Index(s[i:], text)
				if at < 0 {
					return false
				}
				p, i = p+len(text), i+at+len(text)
			}
			continue
		}
		if p < len(pattern) {
			if n, ok := matchOne(pattern[p:], s[i]); ok {
				p += n
				i++
				continue
			}
		}
		if star < 0 {
			return false
		}
		mark++
		p, i = star, mark
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// plainLength returns the length of the longest prefix of pattern without wildcards.
func plainLength(pattern []byte) int {
	for i, c := range pattern {
		switch c {
		case '*', '?', '[', '\\':
			return i
		}
	}
	return len(pattern)
}

// globStep is how many comparisons of bytes take about as long as to look at a key.
const globStep = 4 << 10

// Cost returns the most that matching a key may cost; the unit is the cost of visiting one key.
func Cost(pattern, key []byte) int { return 1 + len(pattern)*len(key)/globStep }

// matchOne matches c with the first element of pattern, which is not empty and
// does not begin with '*', and returns the element's length.
func matchOne(pattern []byte, c byte) (n int, ok bool) {
	switch pattern[0] {
	case '?':
		return 1, true
	case '[':
		return matchClass(pattern, c)
	case '\\':
		if len(pattern) >= 2 {
			return 2, pattern[1] == c
		}
	}
	return 1, pattern[0] == c
}

// matchClass matches c with the class at the start of pattern. A class without
// its ']' reaches to the end of the pattern, and a reversed range is turned
// round, as in Redis.
func matchClass(pattern []byte, c byte) (n int, ok bool) {
	i := 1
	negated := i < len(pattern) && pattern[i] == '^'
	if negated {
		i++
	}
	for i < len(pattern) && pattern[i] != ']' {
		switch {
		case pattern[i] == '\\' && i+1 < len(pattern):
			ok = ok || pattern[i+1] == c
			i += 2
		case i+2 < len(pattern) && pattern[i+1] == '-':
			low, high := min(pattern[i], pattern[i+2]), max(pattern[i], pattern[i+2])
			ok = ok || low <= c && c <= high
			i += 3
		default:
			ok = ok || pattern[i] == c
			i++
		}
	}
	if i < len(pattern) {
		i++ // the ']'
	}
	return i, ok != negated
}
