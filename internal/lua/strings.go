package lua

import (
	"bytes"
	"math"
	"strings"
)

// OpenString adds the string library, and makes it the metatable of strings.
func OpenString(s *State) {
	lib := s.Library("string")
	s.Register(lib, map[string]HostFunction{
		"byte": stringByte, "char": stringChar, "dump": stringDump, "find": stringFind, "format": stringFormat,
		"gmatch": stringGMatch, "gsub": stringGSub, "len": stringLen, "lower": stringLower,
		"match": stringMatch, "rep": stringRep, "reverse": stringReverse, "sub": stringSub, "upper": stringUpper,
	})
	lib.SetString("gfind", lib.GetString("gmatch")) // its name in Lua 5.0
	s.stringMeta = s.NewTable(0, 1)
	s.stringMeta.SetString("__index", TableValue(lib))
}

// fromEnd turns a position that may count from the end into one from the beginning.
func fromEnd(position, length int) int {
	if position < 0 {
		position += length + 1
	}
	return max(position, 0)
}

func stringLen(c *Call) { c.PushNumber(float64(len(c.CheckString(1)))) }

func stringSub(c *Call) {
	text := c.CheckString(1)
	from := max(fromEnd(c.CheckInt(2), len(text)), 1)
	to := min(fromEnd(c.OptInt(3, -1), len(text)), len(text))
	switch {
	case from > to:
		c.PushString("")
	case from == 1 && to == len(text):
		c.PushString(text)
	default:
		c.Push(c.thread.state.copyString(text[from-1 : to]))
	}
}

func stringByte(c *Call) {
	text := c.CheckString(1)
	from := fromEnd(c.OptInt(2, 1), len(text))
	to := min(fromEnd(c.OptInt(3, from), len(text)), len(text))
	from = max(from, 1)
	if from > to {
		return
	}
	if to-from+1+c.args > 8000 {
		c.Errorf("stack overflow (string slice too long)")
	}
	c.Spend(to - from)
	for i := from; i <= to; i++ {
		c.PushNumber(float64(text[i-1]))
	}
}

func stringChar(c *Call) {
	c.Charge(c.args)
	text := make([]byte, c.args)
	for i := range text {
		n := c.CheckInt(i + 1)
		if n != n&0xff {
			c.ArgError(i+1, "invalid value")
		}
		text[i] = byte(n)
	}
	c.PushString(string(text))
}

func stringDump(c *Call) { c.Errorf("unable to dump given function") }

func stringLower(c *Call) { c.mapBytes(isUpper) }
func stringUpper(c *Call) { c.mapBytes(isLower) }

// mapBytes changes the case of the letters that are of the wrong one.
func (c *Call) mapBytes(wrong func(byte) bool) {
	text := c.CheckString(1)
	c.Charge(len(text))
	c.Spend(len(text) >> 2)
	changed := []byte(text)
	for i, b := range changed {
		if wrong(b) {
			changed[i] = b ^ 0x20
		}
	}
	c.PushString(bytesAsString(changed))
}

func stringReverse(c *Call) {
	text := c.CheckString(1)
	c.Charge(len(text))
	c.Spend(len(text) >> 2)
	reversed := make([]byte, len(text))
	for i := range text {
		reversed[len(text)-1-i] = text[i]
	}
	c.PushString(bytesAsString(reversed))
}

func stringRep(c *Call) {
	text, n := c.CheckString(1), c.CheckInt(2)
	if n <= 0 || text == "" {
		c.PushString("")
		return
	}
	if n > math.MaxInt/len(text) {
		abort(ErrMemory)
	}
	c.Charge(len(text) * n)
	c.PushString(strings.Repeat(text, n))
}

func stringFind(c *Call)  { c.find(true) }
func stringMatch(c *Call) { c.find(false) }

// find is string.find, or string.match if positions are not wanted.
func (c *Call) find(positions bool) {
	text, pattern := c.CheckString(1), c.CheckString(2)
	from := min(max(fromEnd(c.OptInt(3, 1), len(text))-1, 0), len(text))
	if positions && (c.Arg(4).truthy() || !strings.ContainsAny(cutAtZero(pattern), "^$*+?.([%-")) {
		c.Spend((len(text)-from)>>4 + len(pattern)>>4)
		at := strings.Index(text[from:], pattern)
		if at < 0 {
			c.Push(Nil)
			return
		}
		c.PushNumber(float64(from + at + 1))
		c.PushNumber(float64(from + at + len(pattern)))
		return
	}
	m := c.newMatcher(text, pattern)
	p := 0
	anchored := m.at(0) == '^'
	if anchored {
		p = 1
	}
	for s := from; s <= len(text); s++ {
		m.level = 0
		if e := m.match(s, p); e >= 0 {
			if positions {
				c.PushNumber(float64(s + 1))
				c.PushNumber(float64(e))
			}
			m.pushCaptures(s, e, !positions)
			return
		}
		if anchored {
			break
		}
	}
	c.Push(Nil)
}

func stringGMatch(c *Call) {
	text, pattern := c.CheckString(1), c.CheckString(2)
	c.Push(c.thread.state.Function(gmatchNext, String(text), String(pattern), Number(0)))
}

// gmatchNext finds the next match. Its captured values are subject, pattern and where to go on.
func gmatchNext(c *Call) {
	text, pattern := c.Captured(0).str(), c.Captured(1).str()
	m := c.newMatcher(text, pattern)
	for s := int(c.Captured(2).num()); s <= len(text); s++ {
		m.level = 0
		if e := m.match(s, 0); e >= 0 {
			next := e
			if e == s {
				next++
			}
			c.SetCaptured(2, Number(float64(next)))
			m.pushCaptures(s, e, true)
			return
		}
	}
}

// A growing is a text that grows at the expense of the budget.
type growing struct {
	call *Call
	text []byte
}

func (g *growing) add(s string) {
	if need := len(g.text) + len(s); need > cap(g.text) {
		size := max(need, 2*cap(g.text), 32)
		g.call.Charge(size)
		g.text = append(make([]byte, 0, size), g.text...)
	}
	g.text = append(g.text, s...)
}

func stringGSub(c *Call) {
	text, pattern := c.CheckString(1), c.CheckString(2)
	replacement := c.Arg(3)
	if !isText(replacement) && !replacement.isFunction() && !replacement.isTable() {
		c.ArgError(3, "string/function/table expected")
	}
	limit := c.OptInt(4, len(text)+1)
	m := c.newMatcher(text, pattern)
	p, n, s := 0, 0, 0
	anchored := m.at(0) == '^'
	if anchored {
		p = 1
	}
	out := growing{call: c}
	for n < limit {
		m.level = 0
		e := m.match(s, p)
		if e >= 0 {
			n++
			m.replace(&out, replacement, s, e)
		}
		switch {
		case e > s:
			s = e
		case s < len(text):
			out.add(text[s : s+1])
			s++
		default:
			s++
		}
		if anchored || s > len(text) {
			break
		}
	}
	if s < len(text) {
		out.add(text[s:])
	}
	c.PushString(bytesAsString(out.text))
	c.PushNumber(float64(n))
}

// replace adds what the match from s to e is replaced by.
func (m *matcher) replace(out *growing, replacement Value, s, e int) {
	var v Value
	switch {
	case replacement.isFunction():
		v = m.callReplacement(replacement, s, e)
	case replacement.isTable():
		v = m.call.thread.index(replacement, m.capture(0, s, e), -1)
	default:
		m.expand(out, replacement, s, e)
		return
	}
	if !v.truthy() {
		out.add(m.subject[s:e])
		return
	}
	text, ok := v.ToString()
	if !ok {
		m.call.Errorf("invalid replacement value (a %s)", v.Kind())
	}
	out.add(text)
}

// callReplacement calls a function with all captures.
func (m *matcher) callReplacement(fn Value, s, e int) Value {
	t := m.call.thread
	slot := t.top
	t.push(fn)
	m.pushCaptures(s, e, true)
	n := t.top - slot - 1
	level := m.level
	t.callAtKeepingTop(slot, n, 1)
	m.level = level
	t.top = slot
	return t.stack[slot]
}

// expand adds a replacement text, in which %0 … %9 stand for captures.
func (m *matcher) expand(out *growing, replacement Value, s, e int) {
	text, _ := replacement.ToString()
	for {
		i := strings.IndexByte(text, '%')
		if i < 0 {
			out.add(text)
			return
		}
		out.add(text[:i])
		c := byte(0)
		if text = text[i+1:]; text != "" {
			c = text[0]
			text = text[1:]
		}
		switch {
		case c == '0':
			out.add(m.subject[s:e])
		case isDigit(c):
			capture, _ := m.capture(int(c)-'1', s, e).ToString()
			out.add(capture)
		default:
			out.add(byteStrings[c : int(c)+1])
		}
	}
}

// quoted is string.format's %q: text that the compiler reads back.
func quoted(out *growing, text string) {
	out.add(`"`)
	for {
		i := strings.IndexAny(text, "\"\\\n\r\x00")
		if i < 0 {
			break
		}
		out.add(text[:i])
		switch c := text[i]; c {
		case '\r':
			out.add(`\r`)
		case 0:
			out.add(`\000`)
		default:
			out.add(`\`)
			out.add(text[i : i+1])
		}
		text = text[i+1:]
	}
	out.add(text)
	out.add(`"`)
}

// cutBytesAtZero is cutAtZero for bytes.
func cutBytesAtZero(b []byte) []byte {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		return b[:i]
	}
	return b
}
