package lua

import "fmt"

// Limits of Lua 5.1.
const (
	maxLocals    = 200
	maxUpvalues  = 60
	maxRegisters = 250
	maxNesting   = 200 // of syntax, and of calls from Go
	fieldsAtOnce = 50  // elements that a constructor keeps in registers
)

// A function is a function that is being compiled.
type function struct {
	outer  *function
	proto  *Prototype
	block  *block
	free   int   // the first free register
	active []int // indices in proto.locals of the visible locals; the n-th is register n
	shown  int   // how many of proto.locals are or were visible

	constants  map[Value]int  // numbers and other values that are not strings
	strings    map[string]int // string constants
	lastTarget int            // the last instruction that something jumps to: no peephole across it
	pending    int            // jumps that go to the next instruction
}

// A block is a scope within a function.
type block struct {
	outer    *block
	locals   int  // visible outside of it
	breaks   int  // the jumps out of it, a list
	captured bool // a closure uses one of its locals
	loop     bool
}

func (p *parser) openFunction(line int) *function {
	p.fn = &function{
		outer:      p.fn,
		proto:      &Prototype{chunk: p.chunk, name: p.given, line: line, registers: 2},
		constants:  map[Value]int{},
		strings:    map[string]int{},
		lastTarget: -1,
		pending:    noJump,
	}
	return p.fn
}

func (p *parser) closeFunction() *Prototype {
	f := p.fn
	p.hideLocals(0)
	p.emit(encode(opReturn, 0, 1, 0))
	f.proto.measure()
	p.fn = f.outer
	return f.proto
}

func (p *parser) enterBlock(b *block, loop bool) {
	*b = block{outer: p.fn.block, locals: len(p.fn.active), breaks: noJump, loop: loop}
	p.fn.block = b
}

func (p *parser) leaveBlock() {
	f := p.fn
	b := f.block
	f.block = b.outer
	p.hideLocals(b.locals)
	if b.captured {
		p.emit(encode(opClose, b.locals, 0, 0))
	}
	f.free = len(f.active)
	p.patchHere(b.breaks)
}

// hideLocals ends the scope of all locals but the first n.
func (p *parser) hideLocals(n int) {
	f := p.fn
	for _, i := range f.active[n:] {
		p.visible[f.proto.locals[i].name]--
		f.proto.locals[i].to = len(f.proto.code)
	}
	f.active = f.active[:n]
}

// newLocal declares a local variable, the n-th of those not yet visible.
func (p *parser) newLocal(name string, n int) {
	f := p.fn
	p.checkLimit(len(f.active)+n+1, maxLocals, "local variables")
	f.proto.locals = append(f.proto.locals, localRange{name: name})
}

// showLocals makes the next n declared variables visible.
func (p *parser) showLocals(n int) {
	f := p.fn
	for range n {
		f.proto.locals[f.shown].from = len(f.proto.code)
		f.active = append(f.active, f.shown)
		p.visible[f.proto.locals[f.shown].name]++
		f.shown++
	}
}

func (f *function) findLocal(name string) int {
	for i := len(f.active) - 1; i >= 0; i-- {
		if f.proto.locals[f.active[i]].name == name {
			return i
		}
	}
	return -1
}

// resolve says what name is in f: a local variable, an upvalue or a global one.
func (p *parser) resolve(f *function, name string, e *expression) {
	if p.visible[name] == 0 {
		*e = newExpression(exprGlobal, p.stringConstant(name))
		return
	}
	if reg := f.findLocal(name); reg >= 0 {
		*e = newExpression(exprLocal, reg)
		return
	}
	if i := p.findUpvalue(f, name); i >= 0 {
		*e = newExpression(exprUpvalue, i)
		return
	}
	*e = newExpression(exprGlobal, p.stringConstant(name))
}

// findUpvalue is the index of the upvalue name of f, which is made if a function around f has such a
// local variable. It is -1 if none has. Functions nest at most maxNesting deep.
func (p *parser) findUpvalue(f *function, name string) int {
	for i := range f.proto.upvalues {
		if f.proto.upvalues[i].name == name {
			return i
		}
	}
	if f.outer == nil {
		return -1
	}
	if reg := f.outer.findLocal(name); reg >= 0 {
		f.outer.markCaptured(reg)
		return p.addUpvalue(f, capture{true, uint8(reg), name})
	}
	if i := p.findUpvalue(f.outer, name); i >= 0 {
		return p.addUpvalue(f, capture{false, uint8(i), name})
	}
	return -1
}

func (p *parser) addUpvalue(f *function, c capture) int {
	if len(f.proto.upvalues) >= maxUpvalues {
		p.failLimit(f, maxUpvalues, "upvalues")
	}
	f.proto.upvalues = append(f.proto.upvalues, c)
	return len(f.proto.upvalues) - 1
}

// markCaptured notes that the block which declares reg must close it.
func (f *function) markCaptured(reg int) {
	b := f.block
	for b != nil && b.locals > reg {
		b = b.outer
	}
	if b != nil {
		b.captured = true
	}
}

func (p *parser) checkLimit(n, limit int, what string) {
	if n > limit {
		p.failLimit(p.fn, limit, what)
	}
}

func (p *parser) failLimit(f *function, limit int, what string) {
	where := "main function"
	if f.proto.line != 0 {
		where = fmt.Sprintf("function at line %d", f.proto.line)
	}
	p.fail(fmt.Sprintf("%s has more than %d %s", where, limit, what), 0)
}
