package lua

import "math"

// operator is a unary or binary operator.
type operator uint8

const (
	operAdd operator = iota // in the order of opAdd … opPow
	operSub
	operMul
	operDiv
	operMod
	operPow
	operConcat
	operNe
	operEq
	operLt
	operLe
	operGt
	operGe
	operAnd
	operOr
	operNone
)

// binaryOperators maps tokens to operators and says how strongly they bind to the left and to the right.
var binaryOperators = map[token]struct {
	oper        operator
	left, right int
}{
	'+': {operAdd, 6, 6}, '-': {operSub, 6, 6}, '*': {operMul, 7, 7}, '/': {operDiv, 7, 7}, '%': {operMod, 7, 7},
	'^': {operPow, 10, 9}, tokConcat: {operConcat, 5, 4},
	tokNe: {operNe, 3, 3}, tokEq: {operEq, 3, 3}, '<': {operLt, 3, 3}, tokLe: {operLe, 3, 3}, '>': {operGt, 3, 3},
	tokGe: {operGe, 3, 3}, tokAnd: {operAnd, 2, 2}, tokOr: {operOr, 1, 1},
}

const unaryPriority = 8

// fold computes an operation on two numerals. It leaves to run time what has no ordinary result.
func fold(op operator, a, b float64) (float64, bool) {
	var n float64
	switch op {
	case operAdd:
		n = a + b
	case operSub:
		n = a - b
	case operMul:
		n = a * b
	case operDiv:
		if b == 0 {
			return 0, false
		}
		n = a / b
	case operMod:
		if b == 0 {
			return 0, false
		}
		n = modulo(a, b)
	case operPow:
		n = power(a, b)
	}
	return n, !math.IsNaN(n)
}

// unary applies an operator, whose token is tok, to e.
func (p *parser) unary(tok token, e *expression, line int) {
	switch tok {
	case '-':
		if e.isNumeral() && e.num != 0 {
			e.num = -e.num
			return
		}
		p.unaryInstruction(opUnm, e, line)
	case '#':
		p.unaryInstruction(opLen, e, line)
	case tokNot:
		p.not(e)
	}
}

func (p *parser) unaryInstruction(op opcode, e *expression, line int) {
	reg := p.toAnyRegister(e)
	p.releaseExpression(e)
	e.info = p.emit(encode(op, 0, reg, 0))
	e.kind = exprPending
	p.setLine(line)
}

func (p *parser) not(e *expression) {
	p.dischargeVariables(e)
	switch e.kind {
	case exprNil, exprFalse:
		e.kind = exprTrue
	case exprString, exprNumber, exprTrue:
		e.kind = exprFalse
	case exprJump:
		p.invert(e)
	default:
		p.dischargeAnywhere(e)
		p.releaseExpression(e)
		e.info = p.emit(encode(opNot, 0, e.info, 0))
		e.kind = exprPending
	}
	e.ifTrue, e.ifFalse = e.ifFalse, e.ifTrue
	p.dropValues(e.ifTrue)
	p.dropValues(e.ifFalse)
}

// infix prepares the left operand, before the right one is read.
func (p *parser) infix(op operator, e *expression) {
	switch op {
	case operAnd:
		p.goIfTrue(e)
	case operOr:
		p.goIfFalse(e)
	case operConcat:
		p.toNextRegister(e)
	default:
		p.toOperand(e)
	}
}

// binary applies op to left and right, and leaves the result in left.
func (p *parser) binary(op operator, left, right *expression, line int) {
	switch op {
	case operAnd:
		p.dischargeVariables(right)
		p.joinJumps(&right.ifFalse, left.ifFalse)
		*left = *right
	case operOr:
		p.dischargeVariables(right)
		p.joinJumps(&right.ifTrue, left.ifTrue)
		*left = *right
	case operConcat:
		p.concat(left, right, line)
	case operEq, operNe:
		p.equality(left, right, op == operEq)
		p.setLine(line)
	case operLt, operLe, operGt, operGe:
		p.order(op, left, right)
		p.setLine(line)
	default:
		p.arithmetic(op, left, right, line)
	}
}

// concat makes one instruction of a chain: a .. (b .. (c .. d)).
func (p *parser) concat(left, right *expression, line int) {
	p.toValue(right)
	if right.kind == exprPending && p.instruction(right).op() == opConcat {
		p.releaseExpression(left)
		*p.instruction(right) = p.instruction(right).withB(left.info)
		left.kind, left.info = exprPending, right.info
		return
	}
	p.toNextRegister(right)
	p.releasePair(left, right)
	left.info = p.emit(encode(opConcat, 0, left.info, right.info))
	left.kind = exprPending
	p.setLine(line)
}

// releasePair frees the registers of two operands, the higher one first.
func (p *parser) releasePair(a, b *expression) {
	if a.kind == exprRegister && (b.kind != exprRegister || a.info > b.info) {
		p.releaseExpression(a)
		p.releaseExpression(b)
		return
	}
	p.releaseExpression(b)
	p.releaseExpression(a)
}

func (p *parser) arithmetic(op operator, left, right *expression, line int) {
	if left.isNumeral() && right.isNumeral() {
		if n, ok := fold(op, left.num, right.num); ok {
			left.num = n
			return
		}
	}
	var i instruction
	if right.isNumeral() {
		p.toAnyRegister(left)
		i = encodeD(opAddK+opcode(op), 0, left.info, 0, p.constant(Number(right.num)))
	} else {
		p.toAnyRegister(right)
		p.toAnyRegister(left)
		i = encode(opAdd+opcode(op), 0, left.info, right.info)
	}
	p.releasePair(left, right)
	left.info = p.emit(i)
	left.kind = exprPending
	p.setLine(line)
}

// smallConstant is the index of a constant that a comparison can name: the first 256 can be.
func (p *parser) smallConstant(e *expression) (int, bool) {
	if e.hasJumps() {
		return 0, false
	}
	index := 0
	switch e.kind {
	case exprNumber:
		index = p.constant(Number(e.num))
	case exprString:
		index = e.info
	case exprNil:
		index = p.constant(Nil)
	case exprTrue:
		index = p.constant(True)
	case exprFalse:
		index = p.constant(False)
	default:
		return 0, false
	}
	return index, index < 256
}

func (p *parser) equality(left, right *expression, equal bool) {
	if left.isNumeral() {
		*left, *right = *right, *left
	}
	var i instruction
	if k, ok := p.smallConstant(right); ok {
		p.toAnyRegister(left)
		i = encodeD(opEqK, left.info, k, bit(equal), noJump)
	} else {
		p.toAnyRegister(right)
		p.toAnyRegister(left)
		i = encodeD(opEq, left.info, right.info, bit(equal), noJump)
	}
	p.releasePair(left, right)
	*left = newExpression(exprJump, p.emit(i))
}

func (p *parser) order(op operator, left, right *expression) {
	if left.isNumeral() && !right.isNumeral() || op >= operGt && !right.isNumeral() {
		*left, *right = *right, *left
		op = [...]operator{operGt, operGe, operLt, operLe}[op-operLt]
	}
	var i instruction
	if k, ok := p.smallConstant(right); ok && right.kind == exprNumber {
		p.toAnyRegister(left)
		i = encodeD(opLtK+opcode(op-operLt), left.info, k, 1, noJump)
	} else {
		if op >= operGt { // a numeral that is no small constant
			*left, *right = *right, *left
			op -= operGt - operLt
		}
		p.toAnyRegister(right)
		p.toAnyRegister(left)
		i = encodeD(opLt+opcode(op-operLt), left.info, right.info, 1, noJump)
	}
	p.releasePair(left, right)
	*left = newExpression(exprJump, p.emit(i))
}
