package lua

import (
	"errors"
	"fmt"
)

// Why the machine ends a script, whatever the script does about it. errors.Is tells them apart.
var (
	ErrSteps   = errors.New("script exceeds its budget of instructions")
	ErrMemory  = errors.New("script exceeds its budget of memory")
	ErrStopped = errors.New("script was stopped")
	ErrTrial   = errors.New("script cannot be tried")
)

// An Error is what a script threw, or why it could not be compiled or was ended.
type Error struct {
	Value  Value  // what was thrown: often a string with the place in front
	Cause  error  // why the machine ended the script; no pcall catches such an error
	Chunk  string // where the script was when State.Call failed, as Compile was told; "" if it had not begun
	Line   int
	syntax bool
}

func (e *Error) Error() string {
	if e.Cause != nil {
		return e.Cause.Error()
	}
	if text, ok := e.Value.ToString(); ok {
		return text
	}
	return fmt.Sprintf("(error object is a %s value)", e.Value.Kind())
}

func (e *Error) Unwrap() error { return e.Cause }

// locate notes the innermost function of Lua that runs.
func (e *Error) locate(t *thread) {
	for f := t.frame; f != nil; f = f.outer {
		if f.closure != nil {
			e.Chunk, e.Line = f.closure.proto.name, f.line()
			return
		}
	}
}

// abort ends the script: pcall does not catch it.
func abort(cause error) { panic(&Error{Value: String(cause.Error()), Cause: cause}) }

// throw raises an ordinary error.
func throw(v Value) { panic(&Error{Value: v}) }

// failf raises an error whose text begins with the place in the script.
func (t *thread) failf(format string, args ...any) {
	text := t.where(t.frame) + fmt.Sprintf(format, args...)
	t.state.charge(len(text))
	throw(String(text))
}

// where is "chunk:line: " of a frame, and nothing for functions of the host.
func (t *thread) where(f *frame) string {
	if f == nil || f.closure == nil {
		return ""
	}
	return fmt.Sprintf("%s:%d: ", f.closure.proto.chunk, f.line())
}

// level is the frame that is n calls outside of the running function; nil if there are fewer.
func (t *thread) level(n int) *frame {
	f := t.frame
	for ; n > 0 && f != nil; n-- {
		if f.tails > 0 && f.closure != nil {
			// Calls that a tail call has replaced count, but there is nothing to say about them.
			if n -= f.tails; n <= 0 {
				return nil
			}
		}
		f = f.outer
	}
	return f
}

// failOperand raises the error that an operand of the current instruction is of the wrong type.
func (t *thread) failOperand(what string, v Value, reg int) {
	if kind, name, ok := t.operandName(reg); ok {
		t.failf("attempt to %s %s '%s' (a %s value)", what, kind, name, v.Kind())
	}
	t.failf("attempt to %s a %s value", what, v.Kind())
}

// failOrder raises the error that two values cannot be compared.
func (t *thread) failOrder(a, b Value) {
	if a.Kind() == b.Kind() {
		t.failf("attempt to compare two %s values", a.Kind())
	}
	t.failf("attempt to compare %s with %s", a.Kind(), b.Kind())
}

// operandName says what the source calls the register of the running function.
func (t *thread) operandName(reg int) (kind, name string, ok bool) {
	f := t.frame
	if f == nil || f.closure == nil || reg < 0 {
		return "", "", false
	}
	t.state.fuel -= f.pc // describe walks through the code
	return f.closure.proto.describe(reg, f.pc-1)
}

// describe says what the source calls register reg at instruction pc.
func (p *Prototype) describe(reg, pc int) (kind, name string, ok bool) {
	if name, ok := p.localName(reg, pc); ok {
		return "local", name, true
	}
	at := p.lastWrite(reg, pc)
	if at < 0 {
		return "", "", false
	}
	i := p.code[at]
	switch i.op() {
	case opGetGlobal:
		return "global", p.constants[i.d()].str(), true
	case opMove:
		if i.b() < i.a() {
			return p.describe(int(i.b()), at)
		}
	case opGetField:
		return "field", p.constants[i.d()].str(), true
	case opGetTable, opGetInt:
		return "field", "?", true
	case opGetUpval:
		return "upvalue", p.upvalues[i.b()].name, true
	case opSelf:
		return "method", p.constants[i.d()].str(), true
	}
	return "", "", false
}

// lastWrite is the last instruction before pc that changed register reg, on the way that takes every
// jump forward; -1 if there is none.
func (p *Prototype) lastWrite(reg, pc int) int {
	last := -1
	for at := 0; at < pc; at++ {
		i := p.code[at]
		a := int(i.a())
		changes := false
		switch op := i.op(); {
		case op == opLoadNil:
			changes = a <= reg && reg <= int(i.b())
		case op == opSelf:
			changes = reg == a || reg == a+1
		case op == opCall || op == opTail:
			changes = reg >= a
		case op == opForIn:
			changes = reg >= a+2
		case op == opVararg:
			changes = reg >= a && (i.b() == 0 || reg < a+int(i.b())-1)
		case op == opForLoop || op == opForPrep:
			changes = reg >= a && reg <= a+3
		case op == opIf || op == opIfSet: // Lua 5.1 counts a test as a write
			changes = reg == a
		case op.writesA():
			changes = reg == a
		}
		if changes {
			last = at
		}
		if op := i.op(); op == opJump || op == opForPrep || i.jumpsIf() {
			if target := at + 1 + i.d(); target > at+1 && target <= pc {
				at = target - 1
			}
		}
	}
	return last
}

// writesA reports whether op stores one result in register a.
func (op opcode) writesA() bool {
	switch op {
	case opSetUpval, opSetGlobal, opSetTable, opSetField, opSetInt, opReturn, opSetList, opClose:
		return false
	}
	return op <= opConcat || op == opClosure
}

// callName says what the source calls the function that the frame's current instruction calls.
func (f *frame) callName() (kind, name string, ok bool) {
	if f == nil || f.closure == nil {
		return "", "", false
	}
	switch i := f.closure.proto.code[f.pc-1]; i.op() {
	case opCall, opTail, opForIn:
		return f.closure.proto.describe(int(i.a()), f.pc-1)
	}
	return "", "", false
}

func (f *frame) line() int {
	if f.pc < 1 {
		return int(f.closure.proto.lines[0])
	}
	return int(f.closure.proto.lines[f.pc-1])
}
