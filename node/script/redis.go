package script

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/lua"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// openOS leaves of the library os what Redis leaves of it: os.clock, here the seconds since the script began.
func (m *Machine) openOS() {
	m.state.Register(m.state.Library("os"), map[string]lua.HostFunction{"clock": func(c *lua.Call) {
		c.EndTrial()
		c.PushNumber(time.Since(m.begun).Seconds())
	}})
}

func (m *Machine) openRedis() {
	s := m.state
	t := s.Library("redis")
	s.Register(t, map[string]lua.HostFunction{
		"call":               func(c *lua.Call) { m.call(c, true) },
		"pcall":              func(c *lua.Call) { m.call(c, false) },
		"error_reply":        errorReply,
		"status_reply":       func(c *lua.Call) { reply(c, "ok", "") },
		"sha1hex":            sha1hex,
		"log":                m.log,
		"setresp":            m.setresp,
		"acl_check_cmd":      m.aclCheck,
		"replicate_commands": func(c *lua.Call) { c.Push(lua.True) },
		"breakpoint":         func(c *lua.Call) { c.Push(lua.False) },
		"debug":              func(*lua.Call) {},
		"set_repl":           setRepl,
	})
	for _, c := range [...]struct { // in order: all Machines are made alike
		name string
		n    float64
	}{
		{"LOG_DEBUG", 0}, {"LOG_VERBOSE", 1}, {"LOG_NOTICE", 2}, {"LOG_WARNING", 3},
		{"REPL_NONE", 0}, {"REPL_AOF", 1}, {"REPL_SLAVE", 2}, {"REPL_REPLICA", 2}, {"REPL_ALL", 3},
		{"REDIS_VERSION_NUM", versionNumber()},
	} {
		t.SetString(c.name, lua.Number(c.n))
	}
	t.SetString("REDIS_VERSION", lua.String(command.RedisVersion))
}

// versionNumber is the version of Redis as 0x00MMmmpp.
func versionNumber() float64 {
	n := 0
	for part := range strings.SplitSeq(command.RedisVersion, ".") {
		digit, err := strconv.Atoi(part)
		if err != nil {
			panic("BUG: " + err.Error())
		}
		n = n<<8 | digit
	}
	return float64(n)
}

// protect makes read-only what scripts share, and has them name only variables that exist.
func (m *Machine) protect() {
	s := m.state
	missing := s.NewTable(0, 1)
	m.missing = missing
	missing.SetString("__index", s.Function(func(c *lua.Call) {
		name, _ := c.Arg(2).ToString()
		c.Errorf("Script attempted to access nonexistent global variable '%s'", name)
	}))
	s.Globals.SetMetatable(missing)
	missing.SetReadOnly(true)
	for key, v, _ := s.Globals.Next(lua.Nil); !key.IsNil(); key, v, _ = s.Globals.Next(key) {
		if t, is := v.AsTable(); is && t != s.Globals {
			t.SetReadOnly(true)
		}
	}
	s.StringMetatable().SetReadOnly(true)
	s.Globals.SetReadOnly(true)
}

// call: redis.call(command, ...) and redis.pcall(command, ...)
func (m *Machine) call(c *lua.Call, throws bool) {
	if c.Len() == 0 {
		m.fail(c, throws, "ERR Please specify at least one argument for this redis lib call")
		return
	}
	if !m.encode(c) {
		m.fail(c, throws, "ERR Lua redis lib command arguments must be strings or integers")
		return
	}
	answer, end := m.host.Call(m.words, m.version)
	if end != nil {
		m.end(c, end)
	}
	if cap(m.text) > FreeBytes {
		m.text = nil
	}
	c.Spend(stepsOfCall)
	d := decoder{m: m, call: c, rest: answer}
	v := d.value()
	if resp.IsError(answer) && throws {
		c.Throw(v)
	}
	c.Push(v)
}

// stepsOfCall is what a command costs a script, beside its result.
const stepsOfCall = 100

// end ends the script. It does not return.
func (m *Machine) end(c *lua.Call, why error) {
	m.state.Look = func() error { return why }
	defer func() { m.state.Look = func() error { return m.host.Look() } }()
	for {
		c.Spend(math.MaxInt32)
	}
}

// encode makes the words of a command from the arguments.
func (m *Machine) encode(c *lua.Call) bool {
	size, args := 0, c.Args()
	for i := range args {
		if text, ok := args[i].AsString(); ok {
			size += len(text)
		} else if _, ok = args[i].AsNumber(); ok {
			size += 24
		} else {
			return false
		}
	}
	if size > cap(m.text) {
		c.Charge(size)
		m.text = make([]byte, 0, size)
	} else {
		c.Spend(size >> 5)
	}
	m.text, m.words = m.text[:0], m.words[:0]
	for i := range args {
		from := len(m.text)
		if text, ok := args[i].AsString(); ok {
			m.text = append(m.text, text...)
		} else {
			n, _ := args[i].AsNumber()
			c.Spend(stepsOfNumber)
			m.text = appendNumber(m.text, n)
		}
		m.words = append(m.words, m.text[from:len(m.text):len(m.text)])
	}
	return true
}

// appendNumber appends a number as Redis 7.0 passes it to commands.
func appendNumber(dst []byte, n float64) []byte {
	if n == math.Trunc(n) && math.Abs(n) < 1e17 {
		return strconv.AppendFloat(dst, n, 'f', -1, 64)
	}
	return appendLong(dst, n)
}

// appendLong appends a number as printf does by "%.17g".
func appendLong(dst []byte, n float64) []byte {
	switch {
	case math.IsNaN(n) && math.Signbit(n):
		return append(dst, "-nan"...)
	case math.IsNaN(n):
		return append(dst, "nan"...)
	case math.IsInf(n, 1):
		return append(dst, "inf"...)
	case math.IsInf(n, -1):
		return append(dst, "-inf"...)
	}
	return fmt.Appendf(dst, "%.17g", n)
}

// fail throws or returns an error of redis.call itself.
func (m *Machine) fail(c *lua.Call, throws bool, text string) {
	v := m.failed(text)
	if throws {
		c.Throw(v)
	}
	c.Push(v)
}

// failed is the table that stands for an error reply.
func (m *Machine) failed(text string) lua.Value {
	t := m.state.NewTable(0, 1)
	t.SetString("err", m.state.NewString([]byte(text)))
	return lua.TableValue(t)
}

// throwf raises an error of a function of redis.
func throwf(c *lua.Call, text string) {
	t := c.State().NewTable(0, 1)
	t.SetString("err", lua.String(text))
	c.Throw(lua.TableValue(t))
}

// reply pushes a table with one field, redis.status_reply's or redis.error_reply's.
func reply(c *lua.Call, field, prefix string) {
	text, ok := c.Arg(1).ToString()
	if c.Len() != 1 || !ok {
		v := c.State().NewTable(0, 1)
		v.SetString("err", lua.String("ERR wrong number or type of arguments"))
		c.Push(lua.TableValue(v))
		return
	}
	c.Charge(len(prefix) + len(text))
	t := c.State().NewTable(0, 1)
	t.SetString(field, lua.String(prefix+text))
	c.Push(lua.TableValue(t))
}

// errorReply: redis.error_reply(text). A text without a code gets ERR.
func errorReply(c *lua.Call) {
	text, ok := c.Arg(1).ToString()
	if c.Len() != 1 || !ok {
		reply(c, "err", "")
		return
	}
	text = strings.TrimPrefix(text, "-")
	prefix := ""
	if !strings.Contains(text, " ") {
		prefix = "ERR "
	}
	c.Charge(len(prefix) + len(text))
	t := c.State().NewTable(0, 1)
	t.SetString("err", lua.String(prefix+text))
	c.Push(lua.TableValue(t))
}

func sha1hex(c *lua.Call) {
	if c.Len() != 1 {
		throwf(c, "ERR wrong number of arguments")
	}
	text, _ := c.Arg(1).ToString()
	c.Charge(len(text) + 40) // it is copied, and takes about that many steps
	sum := sha1.Sum([]byte(text))
	c.PushString(hex.EncodeToString(sum[:]))
}

func (m *Machine) log(c *lua.Call) {
	if c.Len() < 2 {
		throwf(c, "ERR redis.log() requires two arguments or more.")
	}
	level, ok := c.Arg(1).AsNumber()
	if !ok {
		throwf(c, "ERR First argument must be a number (log level).")
	}
	if level < 0 || level > 3 {
		throwf(c, "ERR Invalid debug level.")
	}
	c.EndTrial()
	var line strings.Builder
	for i := 2; i <= c.Len(); i++ {
		text, _ := c.Arg(i).ToString()
		if i > 2 {
			line.WriteByte(' ')
		}
		text = text[:min(len(text), maxLine-min(maxLine, line.Len()))]
		line.WriteString(text)
	}
	c.Charge(line.Len())
	c.Spend(stepsOfLog)
	m.host.Log(int(level), line.String())
}

// maxLine is how much of a line is logged, as in Redis, and stepsOfLog what that costs.
const maxLine, stepsOfLog = 1024, 10_000

func (m *Machine) setresp(c *lua.Call) {
	if c.Len() != 1 {
		throwf(c, "ERR redis.setresp() requires one argument.")
	}
	switch n, _ := c.Arg(1).ToNumber(); n {
	case 2:
		m.version = resp.RESP2
	case 3:
		m.version = resp.RESP3
	default:
		throwf(c, "ERR RESP version must be 2 or 3.")
	}
}

func (m *Machine) aclCheck(c *lua.Call) {
	if c.Len() == 0 {
		throwf(c, "ERR Please specify at least one argument for this redis.acl_check_cmd() call")
	}
	if !m.encode(c) {
		throwf(c, "ERR redis.acl_check_cmd() command arguments must be strings or integers")
	}
	if !m.host.Knows(m.words) {
		throwf(c, "ERR Invalid command passed to redis.acl_check_cmd()")
	}
	c.Push(lua.True)
}

// setRepl: redis.set_repl(what) checks its argument. What scripts change always reaches copies.
func setRepl(c *lua.Call) {
	if c.Len() != 1 {
		throwf(c, "ERR redis.set_repl() requires two arguments.")
	}
	if n, _ := c.Arg(1).ToNumber(); n < 0 || n > 3 {
		throwf(c, "ERR Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.")
	}
}
