package lua

import (
	"fmt"
	"math"
)

// A Call is one call of a host function. Arguments are numbered from 1, as in messages.
type Call struct {
	thread *thread
	frame  *frame
	args   int
}

// State is the State that calls.
func (c *Call) State() *State { return c.thread.state }

// Len is the number of arguments.
func (c *Call) Len() int { return c.args }

// Arg is argument i, and nil where there is none.
func (c *Call) Arg(i int) Value {
	if i > c.args {
		return Nil
	}
	return c.thread.stack[c.frame.base+i-1]
}

// Args are all arguments. They are valid until the call pushes or calls something.
func (c *Call) Args() []Value {
	return c.thread.stack[c.frame.base : c.frame.base+c.args]
}

// Captured is the i-th of the values that the function was made with, from 0.
func (c *Call) Captured(i int) Value { return c.frame.builtin.captured[i] }

// SetCaptured replaces the i-th of these values.
func (c *Call) SetCaptured(i int, v Value) { c.frame.builtin.captured[i] = v }

// Push appends a result.
func (c *Call) Push(v Value) { c.thread.push(v) }

// PushString appends a result: s, which is not copied.
func (c *Call) PushString(s string) { c.thread.push(String(s)) }

// PushNumber appends a result.
func (c *Call) PushNumber(n float64) { c.thread.push(Number(n)) }

// Throw raises an error whose value is v.
func (c *Call) Throw(v Value) { throw(v) }

// Errorf raises an error. Where the script called the function stands in front of the text.
func (c *Call) Errorf(format string, args ...any) {
	text := c.thread.where(c.thread.level(1)) + fmt.Sprintf(format, args...)
	c.Charge(len(text))
	throw(String(text))
}

// ArgError raises the error that something is wrong with argument i.
func (c *Call) ArgError(i int, problem string) {
	kind, name, ok := c.frame.outer.callName()
	if !ok {
		name = "?"
	}
	if kind == "method" {
		if i--; i == 0 {
			c.Errorf("calling '%s' on bad self (%s)", name, problem)
		}
	}
	c.Errorf("bad argument #%d to '%s' (%s)", i, name, problem)
}

// typeName is what messages say of argument i.
func (c *Call) typeName(i int) string {
	if i > c.args {
		return "no value"
	}
	return c.Arg(i).Kind().String()
}

// TypeError raises the error that argument i is not a want.
func (c *Call) TypeError(i int, want string) {
	c.ArgError(i, want+" expected, got "+c.typeName(i))
}

// CheckAny requires that argument i is there, and returns it.
func (c *Call) CheckAny(i int) Value {
	if i > c.args {
		c.ArgError(i, "value expected")
	}
	return c.Arg(i)
}

// CheckString is argument i as a string: a number counts as one.
func (c *Call) CheckString(i int) string {
	v := c.Arg(i)
	if v.isString() {
		return v.str()
	}
	if !v.isNumber() {
		c.TypeError(i, "string")
	}
	text := FormatNumber(v.num())
	c.Charge(len(text))
	return text
}

// OptString is argument i as a string, or otherwise if it is nil or not there.
func (c *Call) OptString(i int, otherwise string) string {
	if c.Arg(i).isNil() {
		return otherwise
	}
	return c.CheckString(i)
}

// CheckNumber is argument i as a number: a string that denotes one counts as one.
func (c *Call) CheckNumber(i int) float64 {
	n, ok := c.thread.toNumber(c.Arg(i))
	if !ok {
		c.TypeError(i, "number")
	}
	return n
}

// CheckInt is argument i as an integer, cut towards zero as C does on amd64.
func (c *Call) CheckInt(i int) int { return truncate(c.CheckNumber(i)) }

// OptInt is argument i as an integer, or otherwise if it is nil or not there.
func (c *Call) OptInt(i int, otherwise int) int {
	if c.Arg(i).isNil() {
		return otherwise
	}
	return c.CheckInt(i)
}

// CheckTable is argument i as a table.
func (c *Call) CheckTable(i int) *Table {
	v := c.Arg(i)
	if !v.isTable() {
		c.TypeError(i, "table")
	}
	return v.table()
}

// CheckFunction is argument i, which must be a function.
func (c *Call) CheckFunction(i int) Value {
	v := c.Arg(i)
	if !v.isFunction() {
		c.TypeError(i, "function")
	}
	return v
}

// truncate is the conversion from double to long of C on amd64: what does not fit becomes the least integer.
func truncate(n float64) int {
	if n >= -1<<63 && n < 1<<63 {
		return int(n)
	}
	return math.MinInt64
}

// Call calls fn and returns its first result.
func (c *Call) Call(fn Value, args ...Value) Value {
	t := c.thread
	slot := t.top
	t.ensure(slot + 1 + len(args))
	t.stack[slot] = fn
	copy(t.stack[slot+1:], args)
	t.callAtKeepingTop(slot, len(args), 1)
	return t.stack[slot]
}

// ToString is what tostring(v) returns: __tostring is asked.
func (c *Call) ToString(v Value) string {
	if meta := c.thread.metafield(v, "__tostring"); !meta.isNil() {
		result := c.Call(meta, v)
		if text, ok := result.ToString(); ok {
			return text
		}
		c.Errorf("'tostring' must return a string to 'print'")
	}
	switch v.Kind() {
	case KindNil:
		return "nil"
	case KindBool:
		if v.truthy() {
			return "true"
		}
		return "false"
	case KindNumber, KindString:
		text, _ := v.ToString()
		return text
	case KindLight:
		if v.address() == 0 {
			return "userdata: (nil)"
		}
	}
	return fmt.Sprintf("%s: 0x%08x", v.Kind(), v.address())
}

// RawSet is t[key] = v as scripts may do it: it fails where t is read-only, and for keys that cannot be.
func (c *Call) RawSet(t *Table, key, v Value) { c.thread.rawSet(t, key, v) }
