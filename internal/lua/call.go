package lua

// enter begins a call of a Lua function whose n arguments lie behind slot.
func (t *thread) enter(c *closure, slot, n, wanted int) *frame {
	p := c.proto
	base := slot + 1
	if p.variadic {
		base += n // the arguments stay below the registers
	}
	t.ensure(base + p.registers)
	f := t.pushFrame(slot, base, wanted)
	f.closure, f.builtin, f.pc = c, nil, 0
	if p.variadic {
		t.spreadArguments(f, p, n)
	} else if n < p.params {
		clear(t.stack[base+n : base+p.params])
	}
	return f
}

// spreadArguments moves the named arguments to their registers; the others are the variable ones.
func (t *thread) spreadArguments(f *frame, p *Prototype, n int) {
	named := min(n, p.params)
	copy(t.stack[f.base:], t.stack[f.slot+1:f.slot+1+named])
	clear(t.stack[f.slot+1 : f.slot+1+named])
	clear(t.stack[f.base+named : f.base+p.params])
	f.varargs = n - named
	if p.argTable {
		t.top = f.base + p.registers
		arg := t.state.NewTable(f.varargs, 1)
		for i := range f.varargs {
			arg.SetInt(i+1, t.stack[f.base-f.varargs+i])
		}
		arg.SetString("n", Number(float64(f.varargs)))
		t.stack[f.base+p.params] = TableValue(arg)
	} else if len(p.locals) > p.params && p.locals[p.params].name == "arg" && p.locals[p.params].from == 0 {
		t.stack[f.base+p.params] = Nil
	}
}

// finish ends the running call, whose n results lie at from, and moves them to where they belong.
func (t *thread) finish(f *frame, from, n int) {
	to := f.slot
	t.frame = f.outer
	t.depth--
	if f.wanted == 1 && n == 1 {
		t.stack[to] = t.stack[from]
		return
	}
	if f.wanted == allResults {
		copy(t.stack[to:], t.stack[from:from+n])
		t.top = to + n
		return
	}
	n = min(n, f.wanted)
	copy(t.stack[to:], t.stack[from:from+n])
	clear(t.stack[to+n : to+f.wanted])
}

// stepsOfCall is what a call between Go and the machine costs beside its instructions.
const stepsOfCall = 8

// callBuiltin runs a host function whose n arguments lie behind slot.
func (t *thread) callBuiltin(b *builtin, slot, n, wanted int) {
	s := t.state
	s.fuel -= stepsOfCall
	t.ensure(slot + 1 + n)
	f := t.pushFrame(slot, slot+1, wanted)
	f.closure, f.builtin = nil, b
	f.call.args = n
	t.top = slot + 1 + n
	inHost, held := s.inHost, s.held
	s.inHost = true
	b.function(&f.call)
	s.inHost, s.held = inHost, held
	if t.yielded {
		return // the frame stays until the coroutine is resumed
	}
	results := f.base + f.call.args
	t.finish(f, results, t.top-results)
}

// callAt calls the value at slot, with n arguments behind it, and returns when it has returned.
func (t *thread) callAt(slot, n, wanted int) {
	t.nested++
	if t.nested >= maxHost {
		t.tooDeep()
	}
	s := t.state
	s.spend(stepsOfCall)
	fn := t.stack[slot]
	for fn.bits != kindClosure && fn.bits != kindBuiltin || fn.isNumber() {
		fn = t.callable(slot, n)
		n++
	}
	if fn.bits == kindBuiltin {
		t.callBuiltin(fn.builtin(), slot, n, wanted)
	} else {
		inHost := s.inHost
		s.inHost = false
		f := t.enter(fn.closure(), slot, n, wanted)
		f.entry = true
		t.execute()
		s.inHost = inHost
	}
	t.nested--
}

func (t *thread) tooDeep() {
	if t.nested == maxHost {
		t.failf("C stack overflow")
	}
	if t.nested > maxHost+maxHost/8 {
		throw(String("error in error handling"))
	}
}

// callable puts the __call metamethod of the value at slot in front of it, and returns it.
func (t *thread) callable(slot, n int) Value {
	v := t.stack[slot]
	t.state.spend(stepsOfCall + n>>2)
	meta := t.metamethod(v, eventCall)
	if !meta.isFunction() {
		reg := -1
		if f := t.frame; f != nil && f.closure != nil {
			reg = slot - f.base
		}
		t.failOperand("call", v, reg)
	}
	t.ensure(slot + n + 2)
	copy(t.stack[slot+1:slot+2+n], t.stack[slot:slot+1+n])
	t.stack[slot] = meta
	t.top = slot + 2 + n
	return meta
}

// callMeta calls a metamethod with up to three arguments and returns its first result.
func (t *thread) callMeta(fn, a, b Value) Value {
	slot := t.liveTop()
	t.ensure(slot + 3)
	t.stack[slot], t.stack[slot+1], t.stack[slot+2] = fn, a, b
	t.callAtKeepingTop(slot, 2, 1)
	return t.stack[slot]
}

// callAtKeepingTop is callAt for use within a host function or an instruction: what it has pushed stays.
func (t *thread) callAtKeepingTop(slot, n, wanted int) {
	top := t.top
	t.top = slot + 1 + n
	t.callAt(slot, n, wanted)
	t.top = top
}

// stepsOfError is what it costs to unwind the stack of Go after an error: 1 to 2 µs.
const stepsOfError = 500

// try is callAt that catches errors. It does not catch those that end the script.
func (t *thread) try(slot, n, wanted int) (failure *Error) {
	s := t.state
	f, depth, nested := t.frame, t.depth, t.nested
	inHost, held, running := s.inHost, s.held, s.running
	returned := false
	defer func() {
		if returned {
			return
		}
		recovered := recover()
		thrown, ok := recovered.(*Error)
		if !ok {
			panic(recovered) // a mistake of the machine or of the host
		}
		if thrown.Cause != nil && f != nil {
			panic(thrown)
		}
		if f == nil {
			thrown.locate(t)
		}
		t.closeUpvalues(slot)
		t.frame, t.depth, t.nested = f, depth, nested
		s.inHost, s.held, s.running = inHost, held, running
		failure = thrown
		s.fuel -= stepsOfError
	}()
	t.callAt(slot, n, wanted)
	returned = true
	return nil
}
