package lua

import (
	"math"
	"slices"
	"strings"
)

func sortedNames(functions map[string]HostFunction) []string {
	names := make([]string, 0, len(functions))
	for name := range functions {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// openBase sets the functions that need no library. There is none that reads files.
func openBase(s *State) {
	g := s.Globals
	g.SetString("_G", TableValue(g))
	g.SetString("_VERSION", String("Lua 5.1"))
	s.Register(g, map[string]HostFunction{
		"assert": baseAssert, "collectgarbage": baseCollectGarbage, "error": baseError, "gcinfo": baseGCInfo,
		"getfenv": baseGetFEnv, "getmetatable": baseGetMetatable, "load": baseLoad, "loadstring": baseLoadString,
		"pcall": basePCall, "print": basePrint, "rawequal": baseRawEqual, "rawget": baseRawGet,
		"rawset": baseRawSet, "select": baseSelect, "setfenv": baseSetFEnv, "setmetatable": baseSetMetatable,
		"tonumber": baseToNumber, "tostring": baseToString, "type": baseType, "unpack": baseUnpack,
		"xpcall": baseXPCall,
	})
	next := s.Function(baseNext)
	g.SetString("next", next)
	g.SetString("pairs", s.Function(basePairs, next))
	g.SetString("ipairs", s.Function(baseIPairs, s.Function(ipairsNext)))
	openCoroutine(s)
}

func baseAssert(c *Call) {
	if !c.CheckAny(1).truthy() {
		c.Errorf("%s", c.OptString(2, "assertion failed!"))
	}
	for i := 1; i <= c.args; i++ {
		c.Push(c.Arg(i))
	}
}

// baseCollectGarbage answers as Lua does; the memory of a script is in the hands of its budget.
func baseCollectGarbage(c *Call) {
	option := c.OptString(1, "collect")
	switch option {
	case "count":
		c.EndTrial() // stacks that have grown stay, and take nothing then
		c.PushNumber(float64(c.thread.state.used) / 1024)
	case "stop", "restart", "collect", "setpause", "setstepmul":
		c.PushNumber(0)
	case "step":
		c.Push(True)
	default:
		c.ArgError(1, "invalid option '"+option+"'")
	}
}

func baseGCInfo(c *Call) {
	c.EndTrial()
	c.PushNumber(float64(c.thread.state.used / 1024))
}

func baseError(c *Call) {
	level := c.OptInt(2, 1)
	v := c.Arg(1)
	if text, ok := v.ToString(); ok && level > 0 {
		where := c.thread.where(c.thread.level(level))
		c.Charge(len(where) + len(text))
		v = String(where + text)
	}
	throw(v)
}

func baseGetMetatable(c *Call) {
	v := c.CheckAny(1)
	meta := c.thread.metatable(v)
	if meta == nil {
		c.Push(Nil)
		return
	}
	if guard := meta.GetString("__metatable"); !guard.isNil() {
		c.Push(guard)
		return
	}
	c.Push(TableValue(meta))
}

func baseSetMetatable(c *Call) {
	t := c.CheckTable(1)
	meta, isTable := c.Arg(2).AsTable()
	if !isTable && (c.args < 2 || !c.Arg(2).isNil()) {
		c.ArgError(2, "nil or table expected")
	}
	if t.meta != nil && !t.meta.GetString("__metatable").isNil() {
		c.Errorf("cannot change a protected metatable")
	}
	if t.readOnly {
		c.thread.failReadOnly()
	}
	t.meta = meta
	c.Push(c.Arg(1))
}

func baseNext(c *Call) {
	k, v, ok := c.CheckTable(1).Next(c.Arg(2))
	if !ok {
		c.thread.failf("invalid key to 'next'")
	}
	c.Push(k)
	if !k.isNil() {
		c.Push(v)
	}
}

func basePairs(c *Call) {
	c.CheckTable(1)
	c.Push(c.Captured(0))
	c.Push(c.Arg(1))
	c.Push(Nil)
}

func baseIPairs(c *Call) {
	c.CheckTable(1)
	c.Push(c.Captured(0))
	c.Push(c.Arg(1))
	c.PushNumber(0)
}

func ipairsNext(c *Call) {
	i := c.CheckInt(2) + 1
	v := c.CheckTable(1).GetInt(i)
	if v.isNil() {
		c.Push(Nil)
		return
	}
	c.PushNumber(float64(i))
	c.Push(v)
}

func basePCall(c *Call) {
	c.CheckAny(1)
	c.protected(c.Arg(1), c.Args()[1:], Nil)
}

func baseXPCall(c *Call) {
	handler := c.CheckAny(2)
	c.protected(c.Arg(1), nil, handler)
}

// protected calls fn and pushes whether it succeeded, and its results or the error. The handler, if
// there is one, is asked for what to make of the error.
func (c *Call) protected(fn Value, args []Value, handler Value) {
	t := c.thread
	status := t.top
	t.ensure(status + len(args) + 2)
	t.stack[status] = True
	t.stack[status+1] = fn
	copy(t.stack[status+2:], args)
	t.top = status + 2 + len(args)
	failure := t.try(status+1, len(args), allResults)
	if failure == nil {
		return
	}
	t.stack[status] = False
	t.top = status + 1
	if handler.isNil() {
		v := failure.Value
		if caught := t.state.Caught; caught != nil {
			v = caught(v)
		}
		c.Push(v)
		return
	}
	t.stack[status+1], t.stack[status+2] = handler, failure.Value
	t.top = status + 3
	if failure = t.try(status+1, 1, 1); failure != nil {
		t.stack[status+1] = failure.Value
	}
	t.top = status + 2
}

func basePrint(c *Call) {
	var line strings.Builder
	for i := 1; i <= c.args; i++ {
		text := c.ToString(c.Arg(i))
		c.Charge(len(text) + 1)
		if i > 1 {
			line.WriteByte('\t')
		}
		line.WriteString(text)
	}
	if hook := c.thread.state.Print; hook != nil {
		hook(line.String())
	}
}

func baseRawEqual(c *Call) {
	c.CheckAny(1)
	c.CheckAny(2)
	c.Push(Bool(c.thread.rawEqual(c.Arg(1), c.Arg(2))))
}

func baseRawGet(c *Call) {
	t := c.CheckTable(1)
	c.Push(t.Get(c.CheckAny(2)))
}

func baseRawSet(c *Call) {
	t := c.CheckTable(1)
	c.CheckAny(2)
	c.RawSet(t, c.Arg(2), c.CheckAny(3))
	c.Push(c.Arg(1))
}

func baseSelect(c *Call) {
	if v := c.Arg(1); v.isString() && v.str() == "#" {
		c.PushNumber(float64(c.args - 1))
		return
	}
	i := c.CheckInt(1)
	if i < 0 {
		i += c.args
	}
	if i < 1 {
		c.ArgError(1, "index out of range")
	}
	c.Spend((c.args - i) >> 2)
	for i++; i <= c.args; i++ {
		c.Push(c.Arg(i))
	}
}

func baseType(c *Call) { c.PushString(c.CheckAny(1).Kind().String()) }

func baseToString(c *Call) {
	text := c.ToString(c.CheckAny(1))
	if !c.Arg(1).isString() {
		c.Charge(len(text))
	}
	c.PushString(text)
}

func baseToNumber(c *Call) {
	base := c.OptInt(2, 10)
	if base == 10 {
		if n, ok := c.thread.toNumber(c.CheckAny(1)); ok {
			c.PushNumber(n)
			return
		}
		c.Push(Nil)
		return
	}
	text := c.CheckString(1)
	c.Spend(len(text) >> 2)
	if base < 2 || base > 36 {
		c.ArgError(2, "base out of range")
	}
	if n, ok := parseInBase(text, base); ok {
		c.PushNumber(n)
		return
	}
	c.Push(Nil)
}

// parseInBase converts text as strtoul of C does: a minus sign is taken modulo 2^64, and what is too
// large becomes the largest number.
func parseInBase(text string, base int) (float64, bool) {
	text = strings.Trim(text, spaces)
	negative := strings.HasPrefix(text, "-")
	if negative || strings.HasPrefix(text, "+") {
		text = text[1:]
	}
	if base == 16 && hasPrefixFold(text, "0x") {
		text = text[2:]
	}
	if text == "" {
		return 0, false
	}
	n, overflow := uint64(0), false
	for i := range len(text) {
		digit := digitValue(text[i])
		if digit >= base {
			return 0, false
		}
		if n > (math.MaxUint64-uint64(digit))/uint64(base) {
			overflow = true
		}
		n = n*uint64(base) + uint64(digit)
	}
	if overflow {
		return math.MaxUint64, true
	}
	if negative {
		n = -n
	}
	return float64(n), true
}

func digitValue(c byte) int {
	switch {
	case isDigit(c):
		return int(c - '0')
	case isAlpha(c):
		return int(c|0x20-'a') + 10
	}
	return 99
}

// maxUnpack is how many results unpack may have: a little below the 8,000 slots that C Lua gives.
const maxUnpack = 8000

func baseUnpack(c *Call) {
	t := c.CheckTable(1)
	from := c.OptInt(2, 1)
	to := 0
	if c.Arg(3).isNil() {
		to = t.Length()
	} else {
		to = c.CheckInt(3)
	}
	if from > to {
		return
	}
	n := to - from + 1
	if n <= 0 || n >= maxUnpack {
		c.Errorf("too many results to unpack")
	}
	c.Spend(n)
	for i := from; i <= to; i++ {
		c.Push(t.GetInt(i))
	}
}
