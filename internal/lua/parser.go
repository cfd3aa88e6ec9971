package lua

import (
	"fmt"
	"strings"
)

// A parser compiles while it reads, in one pass and without a tree: what it keeps of a program is its
// instructions, and its recursion is as deep as the program nests, at most maxNesting.
type parser struct {
	lexer
	given string // how the caller of Compile has named the chunk, cut to maxName
	fn    *function
	depth int

	// visible counts the local variables of each name in all functions that are being compiled, so that
	// global names are not looked for in all of them.
	visible map[string]int
}

// CompileCost is how many bytes and steps the compilation of a source costs at most, for each of its bytes.
const CompileCost = 48

// Compile compiles source. name says where it came from, as for luaL_loadbuffer: "@user_script" is shown
// as user_script. The caller bounds the length of source.
func Compile(name, source string) (proto *Prototype, err error) {
	defer func() {
		if thrown := recover(); thrown != nil {
			failure, ok := thrown.(*Error)
			if !ok || !failure.syntax {
				panic(thrown)
			}
			proto, err = nil, failure
		}
	}()
	p := &parser{
		lexer:   lexer{chunk: chunkName(name), source: source, line: 1, lastLine: 1},
		given:   strings.Clone(name[:min(len(name), maxName)]),
		visible: map[string]int{},
	}
	if source != "" && source[0] == '#' { // as a script for a shell begins
		for p.at < len(source) && source[p.at] != '\n' {
			p.at++
		}
	}
	f := p.openFunction(0)
	f.proto.variadic = true
	var b block
	p.enterBlock(&b, false)
	p.next()
	p.statements()
	p.check(tokEOF)
	f.block = nil
	return p.closeFunction(), nil
}

func (p *parser) enter() {
	p.depth++
	if p.depth > maxNesting {
		p.fail("chunk has too many syntax levels", 0)
	}
}

func (p *parser) failExpected(tok token) { p.failHere(fmt.Sprintf("'%s' expected", tok)) }

func (p *parser) accept(tok token) bool {
	if p.tok == tok {
		p.next()
		return true
	}
	return false
}

func (p *parser) check(tok token) {
	if p.tok != tok {
		p.failExpected(tok)
	}
}

func (p *parser) expect(tok token) {
	p.check(tok)
	p.next()
}

// expectMatch expects what closes opener, which stands in line.
func (p *parser) expectMatch(tok, opener token, line int) {
	if p.accept(tok) {
		return
	}
	if line == p.line {
		p.failExpected(tok)
	}
	p.failHere(fmt.Sprintf("'%s' expected (to close '%s' at line %d)", tok, opener, line))
}

func (p *parser) expectName() string {
	p.check(tokName)
	name := p.text
	p.next()
	return name
}

func (p *parser) blockEnds() bool {
	switch p.tok {
	case tokElse, tokElseif, tokEnd, tokEOF, tokUntil:
		return true
	}
	return false
}

func (p *parser) statements() {
	p.enter()
	for last := false; !last && !p.blockEnds(); {
		last = p.statement()
		p.accept(';')
		p.fn.free = len(p.fn.active)
	}
	p.depth--
}

func (p *parser) blockOf() {
	var b block
	p.enterBlock(&b, false)
	p.statements()
	p.leaveBlock()
}

// statement compiles one statement and reports whether it must be the last of its block.
func (p *parser) statement() bool {
	line := p.line
	switch p.tok {
	case tokIf:
		p.ifStatement(line)
	case tokWhile:
		p.whileStatement(line)
	case tokDo:
		p.next()
		p.blockOf()
		p.expectMatch(tokEnd, tokDo, line)
	case tokFor:
		p.forStatement(line)
	case tokRepeat:
		p.repeatStatement(line)
	case tokFunction:
		p.functionStatement(line)
	case tokLocal:
		p.next()
		if p.accept(tokFunction) {
			p.localFunction()
		} else {
			p.localStatement()
		}
	case tokReturn:
		p.returnStatement()
		return true
	case tokBreak:
		p.next()
		p.breakStatement()
		return true
	default:
		p.expressionStatement()
	}
	return false
}

func (p *parser) expressionStatement() {
	var e expression
	p.primary(&e)
	if e.kind == exprCall {
		*p.instruction(&e) = p.instruction(&e).withC(1)
		return
	}
	p.assignment(e)
}

// assignment compiles the rest of "a, b.c = …", whose first variable has been read.
func (p *parser) assignment(first expression) {
	targets := []expression{first}
	for {
		if kind := targets[len(targets)-1].kind; kind < exprLocal || kind > exprElement {
			p.failHere("syntax error")
		}
		if !p.accept(',') {
			break
		}
		var e expression
		p.primary(&e)
		if e.kind == exprLocal {
			p.keepFromConflict(targets, e.info)
		}
		targets = append(targets, e)
		p.checkLimit(len(targets), maxNesting, "variables in assignment")
	}
	p.expect('=')
	var e expression
	last := len(targets) - 1
	if n := p.expressions(&e); n == len(targets) {
		p.setOneResult(&e)
		p.store(&targets[last], &e)
		last--
	} else {
		p.adjust(len(targets), n, &e)
		p.fn.free -= max(n-len(targets), 0)
	}
	for ; last >= 0; last-- {
		e := newExpression(exprRegister, p.fn.free-1)
		p.store(&targets[last], &e)
	}
}

// keepFromConflict copies local variable reg if a target before it uses it as table or key: in
// "t[i], i = …" the value that i had counts.
func (p *parser) keepFromConflict(targets []expression, reg int) {
	extra := p.fn.free
	conflict := false
	for i := range targets {
		t := &targets[i]
		if t.kind < exprIndexed || t.kind > exprElement {
			continue
		}
		if t.info == reg {
			conflict, t.info = true, extra
		}
		if t.kind == exprIndexed && t.key == reg {
			conflict, t.key = true, extra
		}
	}
	if conflict {
		p.emit(encode(opMove, extra, reg, 0))
		p.reserve(1)
	}
}

// adjust makes want values of the n expressions that have been read, the last of which is e.
func (p *parser) adjust(want, n int, e *expression) {
	extra := want - n
	if e.isMulti() {
		extra = max(extra+1, 0)
		p.setResults(e, extra)
		if extra > 1 {
			p.reserve(extra - 1)
		}
		return
	}
	if e.kind != exprVoid {
		p.toNextRegister(e)
	}
	if extra > 0 {
		from := p.fn.free
		p.reserve(extra)
		p.loadNil(from, extra)
	}
}

func (p *parser) localFunction() {
	p.newLocal(p.expectName(), 0)
	v := newExpression(exprLocal, p.fn.free)
	p.reserve(1)
	p.showLocals(1)
	var body expression
	p.functionBody(&body, false, p.line)
	p.store(&v, &body)
	p.fn.proto.locals[p.fn.active[len(p.fn.active)-1]].from = len(p.fn.proto.code)
}

func (p *parser) localStatement() {
	names := 0
	for {
		p.newLocal(p.expectName(), names)
		names++
		if !p.accept(',') {
			break
		}
	}
	e := newExpression(exprVoid, 0)
	n := 0
	if p.accept('=') {
		n = p.expressions(&e)
	}
	p.adjust(names, n, &e)
	p.showLocals(names)
}

func (p *parser) functionStatement(line int) {
	p.next()
	var v, body expression
	method := false
	p.resolve(p.fn, p.expectName(), &v)
	for p.tok == '.' || p.tok == ':' {
		method = p.tok == ':'
		p.next()
		p.toAnyRegister(&v)
		key := newExpression(exprString, p.stringConstant(p.expectName()))
		p.index(&v, &key)
		if method {
			break
		}
	}
	p.functionBody(&body, method, line)
	p.store(&v, &body)
	p.setLine(line)
}

func (p *parser) returnStatement() {
	p.next()
	if p.blockEnds() || p.tok == ';' {
		p.emit(encode(opReturn, 0, 1, 0))
		return
	}
	var e expression
	n := p.expressions(&e)
	first := len(p.fn.active)
	switch {
	case e.isMulti():
		p.setResults(&e, -1)
		if e.kind == exprCall && n == 1 {
			i := p.instruction(&e)
			*i = *i&^0xff | instruction(opTail)
		}
		n = -1
	case n == 1:
		first = p.toAnyRegister(&e)
	default:
		p.toNextRegister(&e)
	}
	p.emit(encode(opReturn, first, n+1, 0))
}
