package lua

// noJump ends a list of jumps. The jumps of a list that have no target yet are linked by their d: how
// far the next one is.
const noJump = -1

// noRegister stands for a register that is not chosen yet.
const noRegister = 255

func (p *parser) emit(i instruction) int {
	f := p.fn
	p.settlePending()
	f.proto.code = append(f.proto.code, i)
	f.proto.lines = append(f.proto.lines, int32(p.lastLine))
	return len(f.proto.code) - 1
}

// setLine corrects the line of the last instruction.
func (p *parser) setLine(line int) { p.fn.proto.lines[len(p.fn.proto.lines)-1] = int32(line) }

// settlePending points the jumps here that wait for the next instruction.
func (p *parser) settlePending() {
	list := p.fn.pending
	p.fn.pending = noJump
	here := len(p.fn.proto.code)
	p.patchList(list, here, noRegister, here)
}

// jump emits a jump to be patched.
func (p *parser) jump() int {
	pending := p.fn.pending
	p.fn.pending = noJump
	j := p.emit(encodeD(opJump, 0, 0, 0, noJump))
	p.joinJumps(&j, pending) // what would come here goes on to where this one goes
	return j
}

// here marks the next instruction as a target.
func (p *parser) here() int {
	p.fn.lastTarget = len(p.fn.proto.code)
	return p.fn.lastTarget
}

func (p *parser) nextJump(at int) int {
	if d := p.fn.proto.code[at].d(); d != noJump {
		return at + 1 + d
	}
	return noJump
}

func (p *parser) fixJump(at, target int) {
	code := p.fn.proto.code
	code[at] = code[at].withD(target - (at + 1))
}

// jumpBefore emits a jump and puts it in front of list.
func (p *parser) jumpBefore(list int) int {
	j := p.jump()
	p.joinJumps(&j, list)
	return j
}

// joinJumps appends list to *to. It walks through *to, so the longer list is the one to append.
func (p *parser) joinJumps(to *int, list int) {
	if list == noJump {
		return
	}
	if *to == noJump {
		*to = list
		return
	}
	at := *to
	for next := p.nextJump(at); next != noJump; next = p.nextJump(at) {
		at = next
	}
	p.fixJump(at, list)
}

// patchList points the jumps of a list at target; those that carry no value at plain.
// Those that carry one store it in reg, unless that is noRegister.
func (p *parser) patchList(list, target, reg, plain int) {
	for list != noJump {
		next := p.nextJump(list)
		if p.patchValue(list, reg) {
			p.fixJump(list, target)
		} else {
			p.fixJump(list, plain)
		}
		list = next
	}
}

// patchValue lets the jump at store its value in reg, and reports whether it carries one.
func (p *parser) patchValue(at, reg int) bool {
	i := &p.fn.proto.code[at]
	if i.op() != opIfSet {
		return false
	}
	if reg != noRegister && reg != int(i.b()) {
		*i = i.withA(reg)
	} else {
		*i = encodeD(opIf, int(i.b()), 0, int(i.c()), i.d())
	}
	return true
}

// needsValue reports whether a jump of the list carries no value.
func (p *parser) needsValue(list int) bool {
	for ; list != noJump; list = p.nextJump(list) {
		if p.fn.proto.code[list].op() != opIfSet {
			return true
		}
	}
	return false
}

func (p *parser) dropValues(list int) {
	for ; list != noJump; list = p.nextJump(list) {
		p.patchValue(list, noRegister)
	}
}

func (p *parser) patchTo(list, target int) {
	if target == len(p.fn.proto.code) {
		p.patchHere(list)
		return
	}
	p.patchList(list, target, noRegister, target)
}

func (p *parser) patchHere(list int) {
	p.here()
	p.joinJumps(&p.fn.pending, list)
}

func (p *parser) loadNil(from, n int) {
	f := p.fn
	if len(f.proto.code) > f.lastTarget && len(f.proto.code) > 0 {
		last := &f.proto.code[len(f.proto.code)-1]
		if last.op() == opLoadNil && int(last.a()) <= from && from <= int(last.b())+1 {
			if from+n-1 > int(last.b()) {
				*last = last.withB(from + n - 1)
			}
			return
		}
	}
	p.emit(encode(opLoadNil, from, from+n-1, 0))
}

func (p *parser) checkRegisters(n int) {
	f := p.fn
	size := f.free + n
	if size > f.proto.registers {
		if size >= maxRegisters {
			p.fail("function or expression too complex", 0)
		}
		f.proto.registers = size
	}
}

func (p *parser) reserve(n int) {
	p.checkRegisters(n)
	p.fn.free += n
}

// release frees reg if it is no local variable.
func (p *parser) release(reg int) {
	if reg >= len(p.fn.active) {
		p.fn.free--
		if p.fn.free != reg {
			panic("BUG: registers are freed in another order than they were taken")
		}
	}
}

func (p *parser) stringConstant(s string) int {
	if i, ok := p.fn.strings[s]; ok {
		return i
	}
	i := p.addConstant(String(s), hashString(s))
	p.fn.strings[s] = i
	return i
}

func (p *parser) constant(v Value) int {
	if i, ok := p.fn.constants[v]; ok {
		return i
	}
	i := p.addConstant(v, 0)
	p.fn.constants[v] = i
	return i
}

func (p *parser) addConstant(v Value, hash uint32) int {
	proto := p.fn.proto
	p.checkLimit(len(proto.constants)+1, 1<<18, "constants")
	proto.constants = append(proto.constants, v)
	proto.hashes = append(proto.hashes, hash)
	return len(proto.constants) - 1
}
