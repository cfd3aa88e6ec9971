package lua

// expressions compiles a list and returns its length. All but the last are in registers.
func (p *parser) expressions(e *expression) int {
	n := 1
	p.expression(e)
	for p.accept(',') {
		p.toNextRegister(e)
		p.expression(e)
		n++
	}
	return n
}

func (p *parser) expression(e *expression) { p.subexpression(e, 0) }

// subexpression compiles operators that bind more strongly than limit.
func (p *parser) subexpression(e *expression, limit int) {
	p.enter()
	if tok := p.tok; tok == tokNot || tok == '-' || tok == '#' {
		line := p.line
		p.next()
		p.subexpression(e, unaryPriority)
		p.unary(tok, e, line)
	} else {
		p.simple(e)
	}
	for {
		op, ok := binaryOperators[p.tok]
		if !ok || op.left <= limit {
			break
		}
		line := p.line
		p.next()
		p.infix(op.oper, e)
		var right expression
		p.subexpression(&right, op.right)
		p.binary(op.oper, e, &right, line)
	}
	p.depth--
}

func (p *parser) simple(e *expression) {
	switch p.tok {
	case tokNumber:
		*e = newExpression(exprNumber, 0)
		e.num = p.num
	case tokString:
		*e = newExpression(exprString, p.stringConstant(p.text))
	case tokNil:
		*e = newExpression(exprNil, 0)
	case tokTrue:
		*e = newExpression(exprTrue, 0)
	case tokFalse:
		*e = newExpression(exprFalse, 0)
	case tokDots:
		if !p.fn.proto.variadic {
			p.failHere("cannot use '...' outside a vararg function")
		}
		p.fn.proto.argTable = false
		*e = newExpression(exprVararg, p.emit(encode(opVararg, 0, 1, 0)))
	case '{':
		p.constructor(e)
		return
	case tokFunction:
		p.next()
		p.functionBody(e, false, p.line)
		return
	default:
		p.primary(e)
		return
	}
	p.next()
}

// primary compiles a name or parentheses, and what follows: fields, indices and calls.
func (p *parser) primary(e *expression) {
	switch p.tok {
	case tokName:
		p.resolve(p.fn, p.expectName(), e)
	case '(':
		line := p.line
		p.next()
		p.expression(e)
		p.expectMatch(')', '(', line)
		p.dischargeVariables(e)
	default:
		p.failHere("unexpected symbol")
	}
	for {
		switch p.tok {
		case '.':
			p.toAnyRegister(e)
			p.next()
			key := newExpression(exprString, p.stringConstant(p.expectName()))
			p.index(e, &key)
		case '[':
			p.toAnyRegister(e)
			var key expression
			p.bracketed(&key)
			p.index(e, &key)
		case ':':
			p.next()
			p.self(e, p.stringConstant(p.expectName()))
			p.arguments(e)
		case '(', tokString, '{':
			p.toNextRegister(e)
			p.arguments(e)
		default:
			return
		}
	}
}

func (p *parser) bracketed(key *expression) {
	p.next()
	p.expression(key)
	p.toValue(key)
	p.expect(']')
}

// arguments compiles a call of e, which is in the last register (and the object behind it).
func (p *parser) arguments(e *expression) {
	line := p.line
	base := e.info
	args := newExpression(exprVoid, 0)
	switch p.tok {
	case '(':
		if line != p.lastLine {
			p.failHere("ambiguous syntax (function call x new statement)")
		}
		p.next()
		if p.tok != ')' {
			p.expressions(&args)
			if args.isMulti() {
				p.setResults(&args, -1)
			}
		}
		p.expectMatch(')', '(', line)
	case '{':
		p.constructor(&args)
	case tokString:
		args = newExpression(exprString, p.stringConstant(p.text))
		p.next()
	default:
		p.failHere("function arguments expected")
	}
	n := -1
	if !args.isMulti() {
		if args.kind != exprVoid {
			p.toNextRegister(&args)
		}
		n = p.fn.free - (base + 1)
	}
	*e = newExpression(exprCall, p.emit(encode(opCall, base, n+1, 2)))
	p.setLine(line)
	p.fn.free = base + 1
}

// A tableConstructor is a table constructor that is being compiled.
type tableConstructor struct {
	table    int        // its register
	item     expression // the last element, not yet in a register
	pending  int        // elements in registers
	elements int
	fields   int
}

func (p *parser) constructor(e *expression) {
	line := p.line
	at := p.emit(encode(opNewTable, 0, 0, 0))
	*e = newExpression(exprPending, at)
	p.toNextRegister(e)
	t := tableConstructor{table: e.info, item: newExpression(exprVoid, 0)}
	p.expect('{')
	for p.tok != '}' {
		p.closeElement(&t)
		switch {
		case p.tok == '[', p.tok == tokName && p.peek() == '=':
			p.field(&t)
		default:
			p.expression(&t.item)
			t.elements++
			t.pending++
		}
		if !p.accept(',') && !p.accept(';') {
			break
		}
	}
	p.expectMatch('}', '{', line)
	p.lastElement(&t)
	code := p.fn.proto.code
	code[at] = code[at].withC(sizeCode(t.fields)).withD(sizeCode(t.elements))
}

func (p *parser) field(t *tableConstructor) {
	free := p.fn.free
	var key, value expression
	if p.tok == tokName {
		key = newExpression(exprString, p.stringConstant(p.expectName()))
	} else {
		p.bracketed(&key)
	}
	t.fields++
	p.expect('=')
	field := newExpression(exprRegister, t.table)
	p.index(&field, &key)
	p.expression(&value)
	p.store(&field, &value)
	p.fn.free = free
}

// closeElement puts the last element in a register, and those in registers into the table once there
// are fieldsAtOnce.
func (p *parser) closeElement(t *tableConstructor) {
	if t.item.kind == exprVoid {
		return
	}
	p.toNextRegister(&t.item)
	t.item = newExpression(exprVoid, 0)
	if t.pending == fieldsAtOnce {
		p.setList(t, t.pending)
	}
}

func (p *parser) lastElement(t *tableConstructor) {
	switch {
	case t.pending == 0:
	case t.item.isMulti():
		p.setResults(&t.item, -1)
		p.setList(t, 0)
		t.elements--
	default:
		if t.item.kind != exprVoid {
			p.toNextRegister(&t.item)
		}
		p.setList(t, t.pending)
	}
}

// setList stores n elements, or with 0 all up to the top.
func (p *parser) setList(t *tableConstructor, n int) {
	p.emit(encodeD(opSetList, t.table, n, 0, (t.elements-1)/fieldsAtOnce*fieldsAtOnce))
	p.fn.free = t.table + 1
	t.pending = 0
}

// functionBody compiles parameters and body of a function that begins in line.
func (p *parser) functionBody(e *expression, method bool, line int) {
	f := p.openFunction(line)
	if line == 0 {
		panic("BUG: a function begins before its file")
	}
	p.expect('(')
	if method {
		p.newLocal("self", 0)
		p.showLocals(1)
	}
	p.parameters()
	p.expect(')')
	var b block
	p.enterBlock(&b, false)
	b.locals = 0
	p.statements()
	end := p.line
	p.expectMatch(tokEnd, tokFunction, line)
	p.lastLine = end
	f.block = nil
	child := p.closeFunction()
	outer := p.fn.proto
	outer.children = append(outer.children, child)
	*e = newExpression(exprPending, p.emit(encodeD(opClosure, 0, 0, 0, len(outer.children)-1)))
}

func (p *parser) parameters() {
	f := p.fn
	names := 0
	for p.tok != ')' {
		if p.accept(tokDots) {
			// What Lua 5.0 had: the variable arguments as a table in a local called arg.
			p.newLocal("arg", names)
			f.proto.variadic, f.proto.argTable = true, true
			p.showLocals(1)
			break
		}
		if p.tok != tokName {
			p.failHere("<name> or '...' expected")
		}
		p.newLocal(p.expectName(), 0)
		p.showLocals(1)
		names++
		if !p.accept(',') {
			break
		}
	}
	f.proto.params = len(f.active)
	if f.proto.variadic {
		f.proto.params--
	}
	p.reserve(len(f.active))
}
