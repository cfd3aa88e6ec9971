package lua

// execute runs the running frame, and those that it calls, until the frame has returned that is marked
// as the entry, or the coroutine has yielded.
//
// It is one function, against the rule of short ones: its variables are the machine's registers. r is
// the window of the running frame; whatever can move the stack is followed by r = t.window(f). pc is
// stored in the frame before whatever can fail or call. Steps are counted at calls, returns and jumps
// backwards only: mark is the instruction up to which they are, and since all other jumps go forward, pc -
// mark is at least what has been executed since.
func (t *thread) execute() {
	s := t.state
enter:
	f := t.frame
	proto := f.closure.proto
	code, k := proto.code, proto.constants
	r := t.window(f)
	pc := f.pc
	mark := pc
	for {
		i := code[pc]
		pc++
		switch i.op() {
		case opMove:
			r[i.a()] = r[i.b()]
		case opLoadK:
			r[i.a()] = k[i.d()]
		case opLoadNil:
			clear(r[i.a() : int(i.b())+1])
		case opLoadBool:
			r[i.a()] = Bool(i.b() != 0)
			pc += int(i.c())
		case opGetUpval:
			r[i.a()] = *f.closure.upvalues[i.b()].place
		case opSetUpval:
			*f.closure.upvalues[i.b()].place = r[i.a()]

		case opGetGlobal:
			if p := f.closure.env.findString(k[i.d()], proto.hashes[i.d()]); p != nil && !p.isNil() {
				r[i.a()] = *p
				continue
			}
			f.pc = pc
			v := t.index(TableValue(f.closure.env), k[i.d()], -1)
			r = t.window(f)
			r[i.a()] = v
		case opSetGlobal:
			f.pc = pc
			t.setIndex(TableValue(f.closure.env), k[i.d()], r[i.a()], -1)
			r = t.window(f)
		case opGetField, opSelf:
			v := r[i.b()]
			if i.op() == opSelf {
				r[i.a()+1] = v
			}
			if v.isTable() {
				if p := v.table().findString(k[i.d()], proto.hashes[i.d()]); p != nil && !p.isNil() {
					r[i.a()] = *p
					continue
				}
			}
			f.pc = pc
			v = t.index(v, k[i.d()], int(i.b()))
			r = t.window(f)
			r[i.a()] = v
		case opGetInt:
			v := r[i.b()]
			if v.isTable() {
				if table := v.table(); uint(i.d()-1) < uint(len(table.array)) {
					if e := table.array[i.d()-1]; !e.isNil() {
						r[i.a()] = e
						continue
					}
				}
			}
			f.pc = pc
			v = t.index(v, Number(float64(i.d())), int(i.b()))
			r = t.window(f)
			r[i.a()] = v
		case opGetTable:
			v, key := r[i.b()], r[i.c()]
			if v.isTable() && key.isNumber() {
				table, n := v.table(), int(key.num())
				if float64(n) == key.num() && uint(n-1) < uint(len(table.array)) {
					if e := table.array[n-1]; !e.isNil() {
						r[i.a()] = e
						continue
					}
				}
			}
			f.pc = pc
			v = t.index(v, key, int(i.b()))
			r = t.window(f)
			r[i.a()] = v
		case opSetField:
			v := r[i.a()]
			if v.isTable() {
				if table := v.table(); !table.readOnly {
					if p := table.findString(k[i.d()], proto.hashes[i.d()]); p != nil && !p.isNil() {
						*p = r[i.c()]
						table.absent = 0
						continue
					}
				}
			}
			f.pc = pc
			t.setIndex(v, k[i.d()], r[i.c()], int(i.a()))
			r = t.window(f)
		case opSetInt:
			f.pc = pc
			t.setIndex(r[i.a()], Number(float64(i.d())), r[i.c()], int(i.a()))
			r = t.window(f)
		case opSetTable:
			v, key := r[i.a()], r[i.b()]
			if v.isTable() && key.isNumber() {
				table, n := v.table(), int(key.num())
				if float64(n) == key.num() && uint(n-1) < uint(len(table.array)) && !table.readOnly &&
					(table.meta == nil || !table.array[n-1].isNil()) {
					table.array[n-1] = r[i.c()]
					continue
				}
			}
			f.pc = pc
			t.setIndex(v, key, r[i.c()], int(i.a()))
			r = t.window(f)
		case opNewTable:
			f.pc = pc
			table := s.NewTable(codedSize(i.d()), codedSize(int(i.c())))
			r[i.a()] = TableValue(table)

		case opAdd:
			if b, c := &r[i.b()], &r[i.c()]; b.isNumber() && c.isNumber() {
				r[i.a()].setNumber(b.num() + c.num())
				continue
			}
			r = t.slowArithmetic(f, pc, i)
		case opSub:
			if b, c := &r[i.b()], &r[i.c()]; b.isNumber() && c.isNumber() {
				r[i.a()].setNumber(b.num() - c.num())
				continue
			}
			r = t.slowArithmetic(f, pc, i)
		case opMul:
			if b, c := &r[i.b()], &r[i.c()]; b.isNumber() && c.isNumber() {
				r[i.a()].setNumber(b.num() * c.num())
				continue
			}
			r = t.slowArithmetic(f, pc, i)
		case opDiv:
			if b, c := &r[i.b()], &r[i.c()]; b.isNumber() && c.isNumber() {
				r[i.a()].setNumber(b.num() / c.num())
				continue
			}
			r = t.slowArithmetic(f, pc, i)
		case opAddK:
			if b := &r[i.b()]; b.isNumber() {
				r[i.a()].setNumber(b.num() + k[i.d()].num())
				continue
			}
			r = t.slowArithmetic(f, pc, i)
		case opSubK:
			if b := &r[i.b()]; b.isNumber() {
				r[i.a()].setNumber(b.num() - k[i.d()].num())
				continue
			}
			r = t.slowArithmetic(f, pc, i)
		case opMulK:
			if b := &r[i.b()]; b.isNumber() {
				r[i.a()].setNumber(b.num() * k[i.d()].num())
				continue
			}
			r = t.slowArithmetic(f, pc, i)
		case opDivK:
			if b := &r[i.b()]; b.isNumber() {
				r[i.a()].setNumber(b.num() / k[i.d()].num())
				continue
			}
			r = t.slowArithmetic(f, pc, i)
		case opMod, opPow, opModK, opPowK:
			r = t.slowArithmetic(f, pc, i)
		case opUnm:
			if b := &r[i.b()]; b.isNumber() {
				r[i.a()].setNumber(-b.num())
				continue
			}
			f.pc = pc
			v := t.negate(r[i.b()])
			r = t.window(f)
			r[i.a()] = v
		case opNot:
			r[i.a()] = Bool(!r[i.b()].truthy())
		case opLen:
			f.pc = pc
			r[i.a()] = t.length(r[i.b()], int(i.b()))
		case opConcat:
			f.pc = pc
			v := t.concat(f.base+int(i.b()), f.base+int(i.c()))
			r = t.window(f)
			r[i.a()] = v

		case opJump:
			if i.d() < 0 {
				f.pc = pc
				s.fuel -= pc - mark
				mark = pc + i.d()
				if s.fuel < 0 {
					s.refuel()
				}
			}
			pc += i.d()
		case opIf:
			if r[i.a()].truthy() == (i.c() != 0) {
				goto jump
			}
		case opIfSet:
			if v := r[i.b()]; v.truthy() == (i.c() != 0) {
				r[i.a()] = v
				goto jump
			}
		case opEq:
			if a, b := &r[i.a()], &r[i.b()]; a.isNumber() && b.isNumber() {
				if (a.num() == b.num()) == (i.c() != 0) {
					goto jump
				}
				continue
			}
			f.pc = pc
			holds := t.equal(r[i.a()], r[i.b()])
			r = t.window(f)
			if holds == (i.c() != 0) {
				goto jump
			}
		case opEqK:
			f.pc = pc
			if t.rawEqual(r[i.a()], k[i.b()]) == (i.c() != 0) {
				goto jump
			}
		case opLt:
			if a, b := &r[i.a()], &r[i.b()]; a.isNumber() && b.isNumber() {
				if (a.num() < b.num()) == (i.c() != 0) {
					goto jump
				}
				continue
			}
			f.pc = pc
			holds := t.less(r[i.a()], r[i.b()])
			r = t.window(f)
			if holds == (i.c() != 0) {
				goto jump
			}
		case opLe:
			if a, b := &r[i.a()], &r[i.b()]; a.isNumber() && b.isNumber() {
				if (a.num() <= b.num()) == (i.c() != 0) {
					goto jump
				}
				continue
			}
			f.pc = pc
			holds := t.lessEqual(r[i.a()], r[i.b()])
			r = t.window(f)
			if holds == (i.c() != 0) {
				goto jump
			}
		case opLtK, opLeK, opGtK, opGeK:
			f.pc = pc
			holds := t.compareConstant(i.op(), r[i.a()], k[i.b()])
			r = t.window(f)
			if holds == (i.c() != 0) {
				goto jump
			}

		case opForPrep:
			f.pc = pc
			t.prepareLoop(f.base + int(i.a()))
			pc += i.d()
		case opForLoop:
			step := r[i.a()+2].num()
			index := r[i.a()].num() + step
			limit := r[i.a()+1].num()
			if step > 0 && index <= limit || !(step > 0) && limit <= index {
				r[i.a()].setNumber(index)
				r[i.a()+3].setNumber(index)
				goto jump
			}
		case opForIn:
			f.pc = pc
			t.iterate(f.base+int(i.a()), int(i.c()))
			r = t.window(f)
			if v := r[i.a()+3]; !v.isNil() {
				r[i.a()+2] = v
				goto jump
			}

		case opCall:
			f.pc = pc
			s.fuel -= pc - mark
			mark = pc
			if s.fuel < 0 {
				s.refuel()
			}
			slot, n := f.base+int(i.a()), int(i.b())-1
			if n < 0 {
				n = t.top - slot - 1
			}
			fn := r[i.a()]
			for !fn.isFunction() {
				fn = t.callable(slot, n)
				n++
			}
			if fn.bits == kindClosure {
				t.enter(fn.closure(), slot, n, int(i.c())-1)
				goto enter
			}
			t.callBuiltin(fn.builtin(), slot, n, int(i.c())-1)
			if t.yielded {
				return
			}
			r = t.window(f)
		case opTail:
			f.pc = pc
			s.fuel -= pc - mark
			mark = pc
			if s.fuel < 0 {
				s.refuel()
			}
			slot, n := f.base+int(i.a()), int(i.b())-1
			if n < 0 {
				n = t.top - slot - 1
			}
			fn := r[i.a()]
			for !fn.isFunction() {
				fn = t.callable(slot, n)
				n++
			}
			if fn.bits == kindClosure {
				t.replaceFrame(f, fn.closure(), slot, n)
				goto enter
			}
			t.callBuiltin(fn.builtin(), slot, n, allResults) // the next instruction returns its results
			if t.yielded {
				return
			}
			r = t.window(f)
		case opReturn:
			s.fuel -= pc - mark
			if s.fuel < 0 {
				f.pc = pc
				s.refuel()
			}
			from, n := f.base+int(i.a()), int(i.b())-1
			if n < 0 {
				n = t.top - from
			}
			if t.open != nil {
				t.closeUpvalues(f.base)
			}
			t.finish(f, from, n)
			if f.entry {
				return
			}
			goto enter

		case opSetList:
			f.pc = pc
			t.setList(f.base+int(i.a()), int(i.b()), i.d())
		case opClose:
			t.closeUpvalues(f.base + int(i.a()))
		case opClosure:
			f.pc = pc
			r[i.a()] = t.capture(f, proto.children[i.d()])
		case opVararg:
			f.pc = pc
			t.spreadVarargs(f, f.base+int(i.a()), int(i.b())-1)
			r = t.window(f)
		}
		continue

	jump:
		if d := i.d(); d >= 0 {
			pc += d
			continue
		}
		s.fuel -= pc - mark
		pc += i.d()
		mark = pc
		if s.fuel < 0 {
			f.pc = pc
			s.refuel()
		}
	}
}
