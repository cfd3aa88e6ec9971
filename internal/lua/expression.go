package lua

import "math"

type expressionKind uint8

// How an expression's value can be had. What info means is said behind each.
const (
	exprVoid     expressionKind = iota
	exprNil                     //
	exprTrue                    //
	exprFalse                   //
	exprNumber                  // num
	exprString                  // info: constant
	exprLocal                   // info: register
	exprUpvalue                 // info: index
	exprGlobal                  // info: constant
	exprIndexed                 // info: register of the table, key: register of the key
	exprField                   // info: register of the table, key: string constant
	exprElement                 // info: register of the table, key: the integer itself
	exprJump                    // info: the comparison that jumps if it holds
	exprPending                 // info: instruction whose register a is not chosen yet
	exprRegister                // info: register
	exprCall                    // info: instruction
	exprVararg                  // info: instruction
)

// An expression is what the parser knows about a value before it puts it somewhere.
type expression struct {
	kind      expressionKind
	info, key int
	num       float64
	ifTrue    int // jumps that leave when it is true
	ifFalse   int // jumps that leave when it is false
}

func newExpression(kind expressionKind, info int) expression {
	return expression{kind: kind, info: info, ifTrue: noJump, ifFalse: noJump}
}

func (e *expression) hasJumps() bool { return e.ifTrue != noJump || e.ifFalse != noJump }
func (e *expression) isNumeral() bool {
	return e.kind == exprNumber && !e.hasJumps()
}
func (e *expression) isMulti() bool { return e.kind == exprCall || e.kind == exprVararg }

func (p *parser) instruction(e *expression) *instruction { return &p.fn.proto.code[e.info] }

// setResults makes a call or "..." yield n results; -1 stands for all.
func (p *parser) setResults(e *expression, n int) {
	switch e.kind {
	case exprCall:
		*p.instruction(e) = p.instruction(e).withC(n + 1)
	case exprVararg:
		*p.instruction(e) = p.instruction(e).withB(n + 1).withA(p.fn.free)
		p.reserve(1)
	}
}

func (p *parser) setOneResult(e *expression) {
	switch e.kind {
	case exprCall:
		e.kind, e.info = exprRegister, int(p.instruction(e).a())
	case exprVararg:
		*p.instruction(e) = p.instruction(e).withB(2)
		e.kind = exprPending
	}
}

// dischargeVariables reads what e names.
func (p *parser) dischargeVariables(e *expression) {
	switch e.kind {
	case exprLocal:
		e.kind = exprRegister
	case exprUpvalue:
		e.info = p.emit(encode(opGetUpval, 0, e.info, 0))
		e.kind = exprPending
	case exprGlobal:
		e.info = p.emit(encodeD(opGetGlobal, 0, 0, 0, e.info))
		e.kind = exprPending
	case exprIndexed:
		p.releaseIndexed(e)
		e.info = p.emit(encode(opGetTable, 0, e.info, e.key))
		e.kind = exprPending
	case exprField, exprElement:
		op := opGetField
		if e.kind == exprElement {
			op = opGetInt
		}
		p.release(e.info)
		e.info = p.emit(encodeD(op, 0, e.info, 0, e.key))
		e.kind = exprPending
	case exprCall, exprVararg:
		p.setOneResult(e)
	}
}

func (p *parser) releaseIndexed(e *expression) {
	if e.kind == exprIndexed {
		p.release(e.key)
	}
	p.release(e.info)
}

func (p *parser) releaseExpression(e *expression) {
	if e.kind == exprRegister {
		p.release(e.info)
	}
}

func (p *parser) discharge(e *expression, reg int) {
	p.dischargeVariables(e)
	switch e.kind {
	case exprNil:
		p.loadNil(reg, 1)
	case exprTrue:
		p.emit(encode(opLoadBool, reg, 1, 0))
	case exprFalse:
		p.emit(encode(opLoadBool, reg, 0, 0))
	case exprString:
		p.emit(encodeD(opLoadK, reg, 0, 0, e.info))
	case exprNumber:
		p.emit(encodeD(opLoadK, reg, 0, 0, p.constant(Number(e.num))))
	case exprPending:
		*p.instruction(e) = p.instruction(e).withA(reg)
	case exprRegister:
		if reg != e.info {
			p.emit(encode(opMove, reg, e.info, 0))
		}
	default:
		return // void or a jump: nothing to put
	}
	e.kind, e.info = exprRegister, reg
}

func (p *parser) dischargeAnywhere(e *expression) {
	if e.kind != exprRegister {
		p.reserve(1)
		p.discharge(e, p.fn.free-1)
	}
}

// toRegister puts e, its jumps included, in reg.
func (p *parser) toRegister(e *expression, reg int) {
	p.discharge(e, reg)
	if e.kind == exprJump {
		p.joinJumps(&e.ifTrue, e.info)
	}
	if e.hasJumps() {
		loadFalse, loadTrue := noJump, noJump
		if p.needsValue(e.ifTrue) || p.needsValue(e.ifFalse) {
			past := noJump
			if e.kind != exprJump {
				past = p.jump()
			}
			p.here()
			loadFalse = p.emit(encode(opLoadBool, reg, 0, 1))
			p.here()
			loadTrue = p.emit(encode(opLoadBool, reg, 1, 0))
			p.patchHere(past)
		}
		end := p.here()
		p.patchList(e.ifFalse, end, reg, loadFalse)
		p.patchList(e.ifTrue, end, reg, loadTrue)
	}
	*e = newExpression(exprRegister, reg)
}

func (p *parser) toNextRegister(e *expression) {
	p.dischargeVariables(e)
	p.releaseExpression(e)
	p.reserve(1)
	p.toRegister(e, p.fn.free-1)
}

func (p *parser) toAnyRegister(e *expression) int {
	p.dischargeVariables(e)
	if e.kind == exprRegister {
		if !e.hasJumps() {
			return e.info
		}
		if e.info >= len(p.fn.active) {
			p.toRegister(e, e.info)
			return e.info
		}
	}
	p.toNextRegister(e)
	return e.info
}

func (p *parser) toValue(e *expression) {
	if e.hasJumps() {
		p.toAnyRegister(e)
	} else {
		p.dischargeVariables(e)
	}
}

// toOperand leaves a numeral as it is and puts anything else in a register.
func (p *parser) toOperand(e *expression) {
	if !e.isNumeral() {
		p.toAnyRegister(e)
	}
}

// store assigns e to variable.
func (p *parser) store(variable, e *expression) {
	switch variable.kind {
	case exprLocal:
		p.releaseExpression(e)
		p.toRegister(e, variable.info)
		return
	case exprUpvalue:
		p.emit(encode(opSetUpval, p.toAnyRegister(e), variable.info, 0))
	case exprGlobal:
		p.emit(encodeD(opSetGlobal, p.toAnyRegister(e), 0, 0, variable.info))
	case exprIndexed:
		p.emit(encode(opSetTable, variable.info, variable.key, p.toAnyRegister(e)))
	case exprField:
		p.emit(encodeD(opSetField, variable.info, 0, p.toAnyRegister(e), variable.key))
	case exprElement:
		p.emit(encodeD(opSetInt, variable.info, 0, p.toAnyRegister(e), variable.key))
	}
	p.releaseExpression(e)
}

// self makes e:key the function and its first argument.
func (p *parser) self(e *expression, key int) {
	p.toAnyRegister(e)
	p.releaseExpression(e)
	fn := p.fn.free
	p.reserve(2)
	p.emit(encodeD(opSelf, fn, e.info, 0, key))
	*e = newExpression(exprRegister, fn)
}

// index makes table, which is in a register, the variable table[key].
func (p *parser) index(table, key *expression) {
	switch {
	case key.kind == exprString && !key.hasJumps():
		table.kind, table.key = exprField, key.info
	case key.isNumeral() && key.num == math.Trunc(key.num) && math.Abs(key.num) < 1<<30:
		table.kind, table.key = exprElement, int(key.num)
	default:
		table.kind, table.key = exprIndexed, p.toAnyRegister(key)
	}
}

// jumpOn emits a jump that is taken if e is truthy or not, as cond says.
func (p *parser) jumpOn(e *expression, cond bool) int {
	if e.kind == exprPending {
		if not := *p.instruction(e); not.op() == opNot {
			p.dropLast()
			return p.emit(encodeD(opIf, int(not.b()), 0, bit(!cond), noJump))
		}
	}
	p.dischargeAnywhere(e)
	p.releaseExpression(e)
	return p.emit(encodeD(opIfSet, noRegister, e.info, bit(cond), noJump))
}

func (p *parser) dropLast() {
	proto := p.fn.proto
	proto.code = proto.code[:len(proto.code)-1]
	proto.lines = proto.lines[:len(proto.lines)-1]
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// goIfTrue goes on here if e is true, and jumps with e.ifFalse otherwise.
func (p *parser) goIfTrue(e *expression) {
	p.dischargeVariables(e)
	jump := noJump
	switch e.kind {
	case exprString, exprNumber, exprTrue:
	case exprJump:
		p.invert(e)
		jump = e.info
	default:
		jump = p.jumpOn(e, false)
	}
	p.joinJumps(&jump, e.ifFalse)
	e.ifFalse = jump
	p.patchHere(e.ifTrue)
	e.ifTrue = noJump
}

// goIfFalse goes on here if e is false, and jumps with e.ifTrue otherwise.
func (p *parser) goIfFalse(e *expression) {
	p.dischargeVariables(e)
	jump := noJump
	switch e.kind {
	case exprNil, exprFalse:
	case exprJump:
		jump = e.info
	default:
		jump = p.jumpOn(e, true)
	}
	p.joinJumps(&jump, e.ifTrue)
	e.ifTrue = jump
	p.patchHere(e.ifFalse)
	e.ifFalse = noJump
}

// invert makes a comparison jump if it does not hold.
func (p *parser) invert(e *expression) {
	i := p.instruction(e)
	*i = i.withC(1 - int(i.c()))
}
