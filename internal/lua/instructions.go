package lua

// What the instructions do that are too long for the machine's loop.

// window is the registers of f.
func (t *thread) window(f *frame) *[window]Value { return (*[window]Value)(t.stack[f.base:]) }

// stepsOfPower is what it costs to raise a number to a power.
const stepsOfPower = 16

// slowArithmetic is an arithmetic instruction on other things than two numbers, or a less frequent one.
func (t *thread) slowArithmetic(f *frame, pc int, i instruction) *[window]Value {
	f.pc = pc
	r := t.window(f)
	op, a := i.op(), r[i.b()]
	var b Value
	if op >= opAddK {
		op -= opAddK - opAdd
		b = f.closure.proto.constants[i.d()]
	} else {
		b = r[i.c()]
	}
	if a.isNumber() && b.isNumber() {
		if op == opPow {
			t.state.spend(stepsOfPower)
		}
		r[i.a()].setNumber(compute(op, a.num(), b.num()))
		return r
	}
	v := t.arithmetic(op, a, b)
	r = t.window(f)
	r[i.a()] = v
	return r
}

// compareConstant compares v with a numeral, which stands on the right side in the source or was swapped.
func (t *thread) compareConstant(op opcode, v, constant Value) bool {
	if v.isNumber() {
		a, b := v.num(), constant.num()
		switch op {
		case opLtK:
			return a < b
		case opLeK:
			return a <= b
		case opGtK:
			return b < a
		}
		return b <= a
	}
	switch op {
	case opLtK:
		return t.less(v, constant)
	case opLeK:
		return t.lessEqual(v, constant)
	case opGtK:
		return t.less(constant, v)
	}
	return t.lessEqual(constant, v)
}

// prepareLoop makes numbers of index, limit and step, which lie at slot, and steps back once.
func (t *thread) prepareLoop(slot int) {
	for i, what := range [...]string{"initial value", "limit", "step"} {
		v := &t.stack[slot+i]
		n, ok := t.toNumber(*v)
		if !ok {
			t.failf("'for' %s must be a number", what)
		}
		v.setNumber(n)
	}
	t.stack[slot].setNumber(t.stack[slot].num() - t.stack[slot+2].num())
}

// iterate calls the generator of a loop, whose three hidden locals lie at slot, for n variables.
func (t *thread) iterate(slot, n int) {
	at := slot + 3
	t.ensure(at + 3)
	copy(t.stack[at:at+3], t.stack[slot:slot+3])
	t.callAtKeepingTop(at, 2, n)
}

// replaceFrame makes a tail call: the new function takes the place of f.
func (t *thread) replaceFrame(f *frame, c *closure, slot, n int) {
	if t.open != nil {
		t.closeUpvalues(f.base)
	}
	copy(t.stack[f.slot:], t.stack[slot:slot+n+1])
	to, wanted, tails, entry := f.slot, f.wanted, f.tails, f.entry
	t.frame = f.outer
	t.depth--
	t.top = to + n + 1 // so that a census spares the arguments
	inner := t.enter(c, to, n, wanted)
	inner.tails, inner.entry = tails+1, entry
}

// setList stores n values behind slot, or those up to the top, in the table at slot.
func (t *thread) setList(slot, n, offset int) {
	if n == 0 {
		n = t.top - slot - 1
	}
	table := t.stack[slot].table()
	table.reserveArray(offset + n)
	t.state.spend(n)
	for i := 1; i <= n; i++ {
		table.SetInt(offset+i, t.stack[slot+i])
	}
}

// spreadVarargs copies n variable arguments of f to slot; all of them if n is negative.
func (t *thread) spreadVarargs(f *frame, slot, n int) {
	if n < 0 {
		n = f.varargs
		t.ensure(slot + n)
		t.top = slot + n
	}
	have := min(n, f.varargs)
	t.state.spend(n >> 2)
	copy(t.stack[slot:], t.stack[f.base-f.varargs:f.base-f.varargs+have])
	clear(t.stack[slot+have : slot+n])
}
