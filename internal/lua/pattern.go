package lua

import "strings"

// Limits of patterns.
const (
	maxCaptures     = 32
	maxPatternDepth = 2000 // items that may have to be tried again, within each other
)

// What a capture's length says when it is none.
const (
	captureOpen     = -1
	capturePosition = -2
)

// A matcher matches a pattern of Lua with a subject. It backtracks, so a match may take a time that is
// exponential in the length of the pattern; every comparison is a step of the budget.
type matcher struct {
	call     *Call
	subject  string
	pattern  string
	level    int // captures, finished or not
	depth    int
	captures [maxCaptures]struct{ start, length int }
}

func (c *Call) newMatcher(subject, pattern string) *matcher {
	return &matcher{call: c, subject: subject, pattern: cutAtZero(pattern)}
}

// cutAtZero is what C sees of a string. Patterns end at a zero byte in Lua 5.1; %z stands for one.
func cutAtZero(s string) string {
	if i := strings.IndexByte(s, 0); i >= 0 {
		return s[:i]
	}
	return s
}

// at is the byte of the pattern at p, 0 at its end.
func (m *matcher) at(p int) byte {
	if p < len(m.pattern) {
		return m.pattern[p]
	}
	return 0
}

// match matches the pattern from p with the subject from s, and returns where the match ends, or -1.
func (m *matcher) match(s, p int) int {
	m.depth++
	if m.depth > maxPatternDepth {
		m.call.Errorf("pattern too complex")
	}
	end := m.attempt(s, p)
	m.depth--
	return end
}

// attempt is match, one level deeper.
func (m *matcher) attempt(s, p int) int {
	for {
		m.call.Spend(1)
		if p >= len(m.pattern) {
			return s
		}
		switch m.pattern[p] {
		case '(':
			if m.at(p+1) == ')' {
				return m.open(s, p+2, capturePosition)
			}
			return m.open(s, p+1, captureOpen)
		case ')':
			return m.close(s, p+1)
		case '$':
			if p+1 == len(m.pattern) {
				if s == len(m.subject) {
					return s
				}
				return -1
			}
		case '%':
			next, handled := m.escape(&s, p)
			if handled {
				if s < 0 {
					return -1
				}
				p = next
				continue
			}
		}
		end := m.classEnd(p)
		switch m.at(end) {
		case '?':
			if s < len(m.subject) && m.single(m.subject[s], p, end) {
				if result := m.match(s+1, end+1); result >= 0 {
					return result
				}
			}
			p = end + 1
			continue
		case '*':
			return m.longest(s, p, end)
		case '+':
			if s < len(m.subject) && m.single(m.subject[s], p, end) {
				return m.longest(s+1, p, end)
			}
			return -1
		case '-':
			return m.shortest(s, p, end)
		}
		if s >= len(m.subject) || !m.single(m.subject[s], p, end) {
			return -1
		}
		s++
		p = end
	}
}

// escape matches %b, %f and %1 … %9 at p, and reports whether it is one of them. It moves s, to -1 where
// there is no match.
func (m *matcher) escape(s *int, p int) (next int, handled bool) {
	switch c := m.at(p + 1); {
	case c == 'b':
		*s = m.balance(*s, p+2)
		return p + 4, true
	case c == 'f':
		p += 2
		if m.at(p) != '[' {
			m.call.Errorf("missing '[' after '%%f' in pattern")
		}
		end := m.classEnd(p)
		before, here := byte(0), byte(0)
		if *s > 0 {
			before = m.subject[*s-1]
		}
		if *s < len(m.subject) {
			here = m.subject[*s]
		}
		if m.set(before, p, end-1) || !m.set(here, p, end-1) {
			*s = -1
		}
		return end, true
	case isDigit(c):
		*s = m.back(*s, c)
		return p + 2, true
	}
	return p, false
}

// classEnd is the end of the single-character class at p.
func (m *matcher) classEnd(p int) int {
	c := m.pattern[p]
	p++
	switch c {
	case '%':
		if p >= len(m.pattern) {
			m.call.Errorf("malformed pattern (ends with '%%')")
		}
		return p + 1
	case '[':
		if m.at(p) == '^' {
			p++
		}
		for first := true; first || m.at(p) != ']'; first = false {
			if p >= len(m.pattern) {
				m.call.Errorf("malformed pattern (missing ']')")
			}
			if m.pattern[p] == '%' {
				p++
				if p >= len(m.pattern) {
					continue
				}
			}
			p++
		}
		m.call.Spend(p >> 4)
		return p + 1
	}
	return p
}

// single reports whether c matches the class between p and end.
func (m *matcher) single(c byte, p, end int) bool {
	switch m.pattern[p] {
	case '.':
		return true
	case '%':
		return matchClass(c, m.pattern[p+1])
	case '[':
		return m.set(c, p, end-1)
	}
	return m.pattern[p] == c
}

// set reports whether c is in the set whose brackets are at p and end.
func (m *matcher) set(c byte, p, end int) bool {
	m.call.Spend((end - p) >> 2)
	in := true
	if m.at(p+1) == '^' {
		in = false
		p++
	}
	for p++; p < end; p++ {
		switch {
		case m.pattern[p] == '%':
			p++
			if matchClass(c, m.at(p)) {
				return in
			}
		case m.at(p+1) == '-' && p+2 < end:
			if m.pattern[p] <= c && c <= m.pattern[p+2] {
				return in
			}
			p += 2
		case m.pattern[p] == c:
			return in
		}
	}
	return !in
}

// matchClass reports whether c is in %class.
func matchClass(c, class byte) bool {
	in := false
	switch class | 0x20 {
	case 'a':
		in = isAlpha(c)
	case 'c':
		in = isControl(c)
	case 'd':
		in = isDigit(c)
	case 'l':
		in = isLower(c)
	case 'p':
		in = isPunct(c)
	case 's':
		in = isSpace(c)
	case 'u':
		in = isUpper(c)
	case 'w':
		in = isAlnum(c)
	case 'x':
		in = isHexDigit(c)
	case 'z':
		in = c == 0
	default:
		return class == c
	}
	if !isAlpha(class) {
		return class == c
	}
	return in == isLower(class)
}

func (m *matcher) balance(s, p int) int {
	if p+1 >= len(m.pattern) {
		m.call.Errorf("unbalanced pattern")
	}
	if s >= len(m.subject) || m.subject[s] != m.pattern[p] {
		return -1
	}
	begin, end := m.pattern[p], m.pattern[p+1]
	depth := 1
	for i := s + 1; i < len(m.subject); i++ {
		m.call.Spend(1)
		switch m.subject[i] {
		case end:
			if depth--; depth == 0 {
				return i + 1
			}
		case begin:
			depth++
		}
	}
	return -1
}

func (m *matcher) longest(s, p, end int) int {
	n := 0
	for s+n < len(m.subject) && m.single(m.subject[s+n], p, end) {
		m.call.Spend(1)
		n++
	}
	for ; n >= 0; n-- {
		if result := m.match(s+n, end+1); result >= 0 {
			return result
		}
	}
	return -1
}

func (m *matcher) shortest(s, p, end int) int {
	for {
		if result := m.match(s, end+1); result >= 0 {
			return result
		}
		if s >= len(m.subject) || !m.single(m.subject[s], p, end) {
			return -1
		}
		s++
	}
}

func (m *matcher) open(s, p, what int) int {
	if m.level >= maxCaptures {
		m.call.Errorf("too many captures")
	}
	m.captures[m.level].start = s
	m.captures[m.level].length = what
	m.level++
	result := m.match(s, p)
	if result < 0 {
		m.level--
	}
	return result
}

func (m *matcher) close(s, p int) int {
	l := m.level - 1
	for l >= 0 && m.captures[l].length != captureOpen {
		l--
	}
	if l < 0 {
		m.call.Errorf("invalid pattern capture")
	}
	m.captures[l].length = s - m.captures[l].start
	result := m.match(s, p)
	if result < 0 {
		m.captures[l].length = captureOpen
	}
	return result
}

// back matches what capture digit has matched.
func (m *matcher) back(s int, digit byte) int {
	l := int(digit) - '1'
	if l < 0 || l >= m.level || m.captures[l].length == captureOpen {
		m.call.Errorf("invalid capture index")
	}
	from, n := m.captures[l].start, max(m.captures[l].length, 0)
	m.call.Spend(n >> 4)
	if strings.HasPrefix(m.subject[s:], m.subject[from:from+n]) {
		return s + n
	}
	return -1
}

// capture is the i-th capture of a match from s to e. Without captures the whole match is the first.
func (m *matcher) capture(i, s, e int) Value {
	if i >= m.level {
		if i != 0 {
			m.call.Errorf("invalid capture index")
		}
		return m.call.thread.state.copyString(m.subject[s:e])
	}
	c := m.captures[i]
	switch c.length {
	case captureOpen:
		m.call.Errorf("unfinished capture")
	case capturePosition:
		return Number(float64(c.start + 1))
	}
	return m.call.thread.state.copyString(m.subject[c.start : c.start+c.length])
}

// pushCaptures pushes all captures, or with whole the whole match where there are none.
func (m *matcher) pushCaptures(s, e int, whole bool) {
	n := m.level
	if n == 0 && whole {
		n = 1
	}
	for i := range n {
		m.call.Push(m.capture(i, s, e))
	}
}
