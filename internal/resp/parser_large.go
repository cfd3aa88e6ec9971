package resp

import "math"

// A large argument can be passed on in pieces, without its whole request in the buffer. Parse
// announces it, and the caller has two ways to go on:
//
//	*3 SET k $100000 xxxxxxxxxxxxxxxxxxxxxxx CRLF ...
//	               │                        │
//	Gather, and    │   or drop Len() bytes, │ and call Parse with
//	Parse again ───┘   take Large() bytes, ─┘ what follows

// Large returns, after LargeBulk, the length of the argument that begins Len bytes into the buffer.
// Args are then the arguments before it, or those since the last one announced in the same request.
func (p *Parser) Large() int { return p.large }

// Total returns, after LargeBulk, the number of arguments from Args on: those in Args, the
// announced one, and all behind it.
func (p *Parser) Total() int { return len(p.args) + p.left }

// Skips reports, after LargeBulk, whether Limits.Words wants no further argument of the request. Args
// may then lack some, and Gather must be called.
func (p *Parser) Skips() bool { return p.most != askFirst && len(p.spans) == p.most }

// Gather makes Parse treat the announced argument, and all that follow in its request, like any
// other. The next call of Parse must get the same buffer again.
func (p *Parser) Gather() {
	clear(p.args)
	p.args = p.args[:0]
	p.gather = true
	p.stage = atBulk
}

// announce ends a call at the start of a large argument.
func (p *Parser) announce(buf []byte, start, size int) Outcome {
	p.view(buf)
	p.length, p.large = start, size
	p.stage, p.need = atLarge, 0
	return LargeBulk
}

// parseBehindLarge continues at the CR LF behind an argument that the caller has taken.
func (p *Parser) parseBehindLarge(buf []byte) Outcome {
	if len(p.args) > 0 || p.length > 0 {
		p.forget()
		p.passed += p.length + p.large
		p.length = 0
	}
	if len(buf) < 2 {
		p.need = 2
		return NeedMore
	}
	if !endsLine(buf, 0) {
		return p.fail(errCRLF)
	}
	p.left--
	p.most = math.MaxInt
	p.pos, p.seen = 2, 2
	p.stage = atBulk
	return p.parseBulks(buf)
}
