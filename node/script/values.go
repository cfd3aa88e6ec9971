package script

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/dunlin-cache/dunlin/internal/lua"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// decoder makes a value of Lua from a reply.
type decoder struct {
	m    *Machine
	call *lua.Call
	rest []byte // of the reply
}

// stepsOfValue is what it costs to read or write a value, stepsOfTable what a table costs beside its values, and
// stepsOfNumber what it costs to write a number that may be a fraction.
const stepsOfValue, stepsOfTable, stepsOfNumber = 4, 16, 32

// value reads the next value. A reply of a command is well formed, so there is nothing to check.
func (d *decoder) value() lua.Value {
	d.call.Spend(stepsOfValue)
	kind := d.rest[0] // before line changes rest
	line := d.line()
	s := d.m.state
	switch kind {
	case '+':
		return d.field("ok", s.NewString(line))
	case '-':
		return d.field("err", s.NewString(line))
	case ':':
		return lua.Number(number(line))
	case '$':
		text, ok := d.bulk(line)
		if !ok {
			return lua.False
		}
		return s.NewString(text)
	case '*', '>':
		return d.array(line)
	case '_':
		return lua.Nil
	case '#':
		return lua.Bool(line[0] == 't')
	case ',':
		n, _ := strconv.ParseFloat(string(line), 64)
		return d.field("double", lua.Number(n))
	case '(':
		return d.field("big_number", s.NewString(line))
	case '=':
		text, _ := d.bulk(line)
		t := s.NewTable(0, 2)
		t.SetString("format", s.NewString(text[:3]))
		t.SetString("string", s.NewString(text[4:]))
		return d.field("verbatim_string", lua.TableValue(t))
	case '%':
		t := s.NewTable(0, length(line))
		for range length(line) {
			key := d.value()
			if v := d.value(); !key.IsNil() {
				t.Set(key, v)
			}
		}
		return d.field("map", lua.TableValue(t))
	case '~':
		t := s.NewTable(0, length(line))
		for range length(line) {
			if key := d.value(); !key.IsNil() {
				t.Set(key, lua.True)
			}
		}
		return d.field("set", lua.TableValue(t))
	}
	panic("BUG: a command replies " + strconv.Quote(string(kind)))
}

func (d *decoder) array(line []byte) lua.Value {
	n := length(line)
	if n < 0 {
		return lua.False
	}
	t := d.m.state.NewTable(n, 0)
	for i := range n {
		t.SetInt(i+1, d.value())
	}
	return lua.TableValue(t)
}

// field makes a table of one field.
func (d *decoder) field(name string, v lua.Value) lua.Value {
	t := d.m.state.NewTable(0, 1)
	t.SetString(name, v)
	return lua.TableValue(t)
}

// line takes the next line, without the first byte and the end.
func (d *decoder) line() []byte {
	end := bytes.IndexByte(d.rest, '\n')
	line := d.rest[1 : end-1]
	d.rest = d.rest[end+1:]
	return line
}

func (d *decoder) bulk(line []byte) (text []byte, ok bool) {
	n := length(line)
	if n < 0 {
		return nil, false
	}
	text, d.rest = d.rest[:n], d.rest[n+len("\r\n"):]
	return text, true
}

func length(line []byte) int {
	n, _ := resp.ParseInt(line)
	return int(n)
}

func number(line []byte) float64 {
	n, _ := resp.ParseInt(line)
	return float64(n)
}

const (
	// maxReply is how long the reply of a script is at most, in bytes.
	maxReply = 64 << 20
	// maxDepth is how deep tables in the reply lie in each other: proxies read nothing that is deeper than
	// resp.MaxDepth, and the reply may be one of EXEC.
	maxDepth = resp.MaxDepth - 2
	// maxText is how long an error, a status or a big number in the reply is: proxies read no longer lines.
	maxText = 32 << 10
	// lookAt is after how many bytes of the reply the Host is asked whether to go on.
	lookAt = 64 << 10
)

// encoder makes a reply from a value of Lua.
type encoder struct {
	m      *Machine
	call   *lua.Call
	v      resp.Version // of the client
	out    []byte
	sent   int // bytes before out
	write  func(part []byte) bool
	failed error
}

// Reply writes the result of the run as a reply for a client with that version of the protocol, in parts that are
// valid during write. The error is an *Error: what was written is no reply then. It may also be the Host's.
func (m *Machine) Reply(v resp.Version, write func(part []byte) bool) error {
	e := &encoder{m: m, v: v, write: write, out: m.text[:0]}
	m.encoder = e
	_, err := m.state.Call(m.answer) // to walk through tables takes steps, at which the Host may end the script
	m.text = e.out[:0]
	if err != nil {
		return m.failure(m.run.Script, err)
	}
	return e.failed
}

// result writes the result of the run.
func (e *encoder) result() {
	e.value(e.m.result, 0)
	e.flush()
}

func (e *encoder) fail(err error) {
	if e.failed == nil {
		e.failed = err
	}
}

// flush writes what there is.
func (e *encoder) flush() {
	if e.failed != nil {
		return
	}
	if e.sent += len(e.out); e.sent > maxReply {
		e.fail(&Error{"ERR the reply of the script is longer than 64 MiB"})
	} else if !e.write(e.out) {
		e.fail(&Error{"ERR executed, but there was no memory for the reply"})
	} else if err := e.m.host.Look(); err != nil {
		e.fail(err)
	}
	e.out = e.out[:0]
}

func (e *encoder) value(v lua.Value, depth int) {
	if len(e.out) > lookAt {
		e.flush()
	}
	if e.failed != nil {
		return
	}
	e.call.Spend(stepsOfValue)
	switch v.Kind() {
	case lua.KindString:
		e.bulk(v)
	case lua.KindNumber:
		n, _ := v.AsNumber()
		e.out = resp.AppendInt(e.out, truncate(n))
	case lua.KindBool:
		e.bool(v.Truthy())
	case lua.KindTable:
		if depth == maxDepth {
			e.out = resp.AppendError(e.out, "ERR reached lua stack limit")
			return
		}
		t, _ := v.AsTable()
		e.table(t, depth+1)
	default:
		e.out = resp.AppendNull(e.out, e.v)
	}
}

// truncate converts as C does on amd64.
func truncate(n float64) int64 {
	if n >= -1<<63 && n < 1<<63 {
		return int64(n)
	}
	return -1 << 63
}

func (e *encoder) bulk(v lua.Value) {
	text, _ := v.AsString()
	if len(text) > lookAt {
		e.out = resp.AppendBulkHeader(e.out, len(text))
		for ; len(text) > lookAt && e.failed == nil; text = text[lookAt:] {
			e.out = append(e.out, text[:lookAt]...)
			e.flush()
		}
		e.out = append(append(e.out, text...), "\r\n"...)
		return
	}
	e.out = resp.AppendBulkString(e.out, text)
}

func (e *encoder) bool(yes bool) {
	switch {
	case e.m.version == resp.RESP2 && yes:
		e.out = resp.AppendInt(e.out, 1)
	case e.m.version == resp.RESP2:
		e.out = resp.AppendNull(e.out, e.v)
	case e.v == resp.RESP2 && yes:
		e.out = resp.AppendInt(e.out, 1)
	case e.v == resp.RESP2:
		e.out = resp.AppendInt(e.out, 0)
	case yes:
		e.out = append(e.out, "#t\r\n"...)
	default:
		e.out = append(e.out, "#f\r\n"...)
	}
}

// table writes a table: one with a field of a certain name stands for another type.
func (e *encoder) table(t *lua.Table, depth int) {
	e.call.Spend(stepsOfTable)
	if text, ok := t.GetString("err").ToString(); ok {
		e.out = resp.AppendError(e.out, errorLine(e.line(text)))
		return
	}
	if text, ok := t.GetString("ok").ToString(); ok {
		e.out = resp.AppendSimple(e.out, oneLine(e.line(text)))
		return
	}
	if n, ok := t.GetString("double").AsNumber(); ok {
		e.double(n)
		return
	}
	if inner, ok := t.GetString("map").AsTable(); ok {
		e.pairs(inner, depth, true)
		return
	}
	if inner, ok := t.GetString("set").AsTable(); ok {
		e.pairs(inner, depth, false)
		return
	}
	if text, ok := t.GetString("big_number").ToString(); ok {
		if text = oneLine(e.line(text)); e.v == resp.RESP3 {
			e.out = append(append(append(e.out, '('), text...), "\r\n"...)
		} else {
			e.out = resp.AppendBulkString(e.out, text)
		}
		return
	}
	if inner, ok := t.GetString("verbatim_string").AsTable(); ok {
		format, hasFormat := inner.GetString("format").ToString()
		text, hasText := inner.GetString("string").ToString()
		if hasFormat && hasText {
			e.out = resp.AppendVerbatim(e.out, e.v, (format + "   ")[:3], text)
			return
		}
	}
	n := 0
	for !t.GetInt(n + 1).IsNil() {
		n++
	}
	e.out = resp.AppendArray(e.out, n)
	for i := range n {
		e.value(t.GetInt(i+1), depth)
	}
}

func (e *encoder) double(n float64) {
	e.call.Spend(stepsOfNumber)
	text := appendLong(nil, n)
	if e.v == resp.RESP3 {
		e.out = append(append(append(e.out, ','), text...), "\r\n"...)
	} else {
		e.out = resp.AppendBulk(e.out, text)
	}
}

// line returns what fits into a line of a text, whose bytes are looked at one by one.
func (e *encoder) line(text string) string {
	text = cut(text)
	e.call.Spend(len(text) >> 3)
	return text
}

// pairs writes a table as a map, or its keys as a set.
func (e *encoder) pairs(t *lua.Table, depth int, values bool) {
	n := 0
	for key, _, _ := t.Next(lua.Nil); !key.IsNil(); key, _, _ = t.Next(key) {
		n++
	}
	if values {
		e.out = resp.AppendMap(e.out, e.v, n)
	} else {
		e.out = resp.AppendSet(e.out, e.v, n)
	}
	for key, v, _ := t.Next(lua.Nil); !key.IsNil(); key, v, _ = t.Next(key) {
		if e.value(key, depth); values {
			e.value(v, depth)
		}
	}
}

func cut(text string) string { return text[:min(len(text), maxText)] }

// errorLine is the text of an error that a script has made. Errors that tell proxies and clients where to send a
// command are not for scripts to make: they get a code in front.
func errorLine(text string) string {
	text = cut(text)
	for _, code := range [...]string{"DUNLIN", "MOVED", "ASK", "CLUSTERDOWN"} {
		if strings.HasPrefix(text, code) {
			return "ERR " + text
		}
	}
	return text
}

// oneLine is text without ends of lines.
func oneLine(text string) string {
	b := []byte(text)
	for i, c := range b {
		if c == '\r' || c == '\n' {
			b[i] = ' '
		}
	}
	return string(b)
}
