package lua

// condition compiles a condition and returns the jumps that leave when it is false.
func (p *parser) condition() int {
	var e expression
	p.expression(&e)
	if e.kind == exprNil {
		e.kind = exprFalse
	}
	p.goIfTrue(&e)
	return e.ifFalse
}

func (p *parser) ifStatement(line int) {
	ends := noJump
	for {
		p.next() // if or elseif
		otherwise := p.condition()
		p.expect(tokThen)
		p.blockOf()
		switch p.tok {
		case tokElseif:
			ends = p.jumpBefore(ends)
			p.patchHere(otherwise)
			continue
		case tokElse:
			ends = p.jumpBefore(ends)
			p.patchHere(otherwise)
			p.next()
			p.blockOf()
		default:
			p.joinJumps(&ends, otherwise)
		}
		break
	}
	p.patchHere(ends)
	p.expectMatch(tokEnd, tokIf, line)
}

func (p *parser) whileStatement(line int) {
	p.next()
	start := p.here()
	exits := p.condition()
	var b block
	p.enterBlock(&b, true)
	p.expect(tokDo)
	p.blockOf()
	p.patchTo(p.jump(), start)
	p.expectMatch(tokEnd, tokWhile, line)
	p.leaveBlock()
	p.patchHere(exits)
}

func (p *parser) repeatStatement(line int) {
	start := p.here()
	var loop, scope block
	p.enterBlock(&loop, true)
	p.enterBlock(&scope, false)
	p.next()
	p.statements()
	p.expectMatch(tokUntil, tokRepeat, line)
	again := p.condition() // sees the locals of the body
	if scope.captured {
		p.breakStatement()
		p.patchHere(again)
		p.leaveBlock()
		p.patchTo(p.jump(), start)
	} else {
		p.leaveBlock()
		p.patchTo(again, start)
	}
	p.leaveBlock()
}

func (p *parser) breakStatement() {
	captured := false
	b := p.fn.block
	for b != nil && !b.loop {
		captured = captured || b.captured
		b = b.outer
	}
	if b == nil {
		p.failHere("no loop to break")
	}
	if captured {
		p.emit(encode(opClose, b.locals, 0, 0))
	}
	b.breaks = p.jumpBefore(b.breaks)
}

func (p *parser) forStatement(line int) {
	var loop block
	p.enterBlock(&loop, true)
	p.next()
	name := p.expectName()
	switch p.tok {
	case '=':
		p.numericFor(name, line)
	case ',', tokIn:
		p.genericFor(name)
	default:
		p.failHere("'=' or 'in' expected")
	}
	p.expectMatch(tokEnd, tokFor, line)
	p.leaveBlock()
}

func (p *parser) numericFor(name string, line int) {
	base := p.fn.free
	p.newLocal("(for index)", 0)
	p.newLocal("(for limit)", 1)
	p.newLocal("(for step)", 2)
	p.newLocal(name, 3)
	p.next()
	p.nextValue()
	p.expect(',')
	p.nextValue()
	if p.accept(',') {
		p.nextValue()
	} else {
		p.emit(encodeD(opLoadK, p.fn.free, 0, 0, p.constant(Number(1))))
		p.reserve(1)
	}
	p.forBody(base, line, 1, true)
}

func (p *parser) nextValue() {
	var e expression
	p.expression(&e)
	p.toNextRegister(&e)
}

func (p *parser) genericFor(name string) {
	base := p.fn.free
	p.newLocal("(for generator)", 0)
	p.newLocal("(for state)", 1)
	p.newLocal("(for control)", 2)
	p.newLocal(name, 3)
	names := 1
	for p.accept(',') {
		p.newLocal(p.expectName(), 3+names)
		names++
	}
	p.expect(tokIn)
	line := p.line
	var e expression
	p.adjust(3, p.expressions(&e), &e)
	p.checkRegisters(3) // to call the generator
	p.forBody(base, line, names, false)
}

// forBody compiles the body of a loop whose three hidden locals begin at base.
func (p *parser) forBody(base, line, names int, numeric bool) {
	p.showLocals(3)
	p.expect(tokDo)
	prepare := 0
	if numeric {
		prepare = p.emit(encodeD(opForPrep, base, 0, 0, noJump))
	} else {
		prepare = p.jump()
	}
	var b block
	p.enterBlock(&b, false)
	p.showLocals(names)
	p.reserve(names)
	p.blockOf()
	p.leaveBlock()
	if numeric {
		p.fixJump(prepare, p.here())
		p.emit(encodeD(opForLoop, base, 0, 0, noJump))
	} else {
		p.patchHere(prepare)
		p.emit(encodeD(opForIn, base, 0, names, noJump))
	}
	p.setLine(line)
	p.fixJump(len(p.fn.proto.code)-1, prepare+1)
}
