package bitmaps

import (
	"math"

	"github.com/dunlin-cache/dunlin/internal/bitstring"
	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// overflow says what becomes of a result that does not fit its field.
type overflow uint8

const (
	wrap overflow = iota
	saturate
	refuse
)

type fieldOpKind uint8

const (
	getField fieldOpKind = iota
	setField
	incrField
)

// fieldOp is one operation of a BITFIELD.
type fieldOp struct {
	kind     fieldOpKind
	signed   bool
	width    uint
	at       uint64
	operand  int64
	overflow overflow
}

// fieldOps reads the operations of a BITFIELD one by one: once to check them all, and once more to
// execute them.
type fieldOps struct {
	args     [][]byte // not read yet
	overflow overflow // of the operations to come
}

// next reads an operation. If it cannot be executed, refusal is the error.
func (f *fieldOps) next() (op fieldOp, more bool, refusal string) {
	for len(f.args) > 0 && exec.Is(f.args[0], "OVERFLOW") && len(f.args) > 1 {
		if !f.overflow.read(f.args[1]) {
			return op, false, errOverflowType
		}
		f.args = f.args[2:]
	}
	if len(f.args) == 0 {
		return op, false, ""
	}
	op.overflow = f.overflow
	taken := 4
	switch name := f.args[0]; {
	case exec.Is(name, "GET"):
		op.kind, taken = getField, 3
	case exec.Is(name, "SET"):
		op.kind = setField
	case exec.Is(name, "INCRBY"):
		op.kind = incrField
	default:
		return op, false, exec.ErrSyntax
	}
	if len(f.args) < taken {
		return op, false, exec.ErrSyntax
	}
	args := f.args[1:taken]
	f.args = f.args[taken:]
	refusal = op.read(args)
	return op, refusal == "", refusal
}

func (o *overflow) read(arg []byte) bool {
	switch {
	case exec.Is(arg, "WRAP"):
		*o = wrap
	case exec.Is(arg, "SAT"):
		*o = saturate
	case exec.Is(arg, "FAIL"):
		*o = refuse
	default:
		return false
	}
	return true
}

// read reads the type, the offset and, if there is one, the operand.
func (op *fieldOp) read(args [][]byte) (refusal string) {
	typ := args[0]
	if len(typ) == 0 || typ[0] != 'i' && typ[0] != 'u' {
		return errFieldType
	}
	op.signed = typ[0] == 'i'
	width, ok := resp.ParseInt(typ[1:])
	if !ok || width < 1 || width > 64 || width == 64 && !op.signed {
		return errFieldType
	}
	op.width = uint(width)
	if op.at, ok = bitOffset(args[1], uint64(width)); !ok {
		return errBitOffset
	}
	if op.kind != getField {
		if op.operand, ok = resp.ParseInt(args[2]); !ok {
			return exec.ErrNotInteger
		}
	}
	return ""
}

// maxBits is the largest number of bits in a string.
const maxBits = exec.MaxString * 8

// bitOffset reads the position of a bit. With a width, "#n" is the position of the n-th field of
// that width.
func bitOffset(arg []byte, width uint64) (at uint64, ok bool) {
	factor := uint64(1)
	if width > 0 && len(arg) > 0 && arg[0] == '#' {
		arg, factor = arg[1:], width
	}
	n, ok := resp.ParseInt(arg)
	if !ok || n < 0 || n >= maxBits || uint64(n)*factor >= maxBits {
		return 0, false
	}
	return uint64(n) * factor, true
}

// execute applies the operation to a value. ok is false if OVERFLOW FAIL refuses it.
func (op *fieldOp) execute(value []byte) (reply int64, ok bool) {
	old := op.signExtend(bitstring.Field(value, op.at, op.width))
	result, overflowed := old, false
	switch op.kind {
	case getField:
		return old, true
	case setField:
		result, overflowed = op.sum(0, op.operand)
		if !op.signed && op.operand < 0 && op.overflow == saturate {
			result = op.most() // as in Redis, which takes it for a very large number
		}
	case incrField:
		result, overflowed = op.sum(old, op.operand)
	}
	if overflowed && op.overflow == refuse {
		return 0, false
	}
	bitstring.SetField(value, op.at, op.width, uint64(result))
	if op.kind == setField {
		return old, true
	}
	return result, true
}

// executeAndSee is execute, and reports whether the field has another value then.
func (op *fieldOp) executeAndSee(value []byte) (reply int64, changed, ok bool) {
	if op.kind == getField {
		reply, ok = op.execute(value)
		return reply, false, ok
	}
	before := bitstring.Field(value, op.at, op.width)
	reply, ok = op.execute(value)
	return reply, bitstring.Field(value, op.at, op.width) != before, ok
}

// signExtend turns the bits of a field into a number. An unsigned field has at most 63.
func (op *fieldOp) signExtend(v uint64) int64 {
	if !op.signed {
		return int64(v & (math.MaxUint64 >> (64 - op.width)))
	}
	return int64(v<<(64-op.width)) >> (64 - op.width)
}

// sum adds delta to the number in the field, or to 0. If the field cannot hold the sum, overflowed
// is true and result is what is stored instead.
func (op *fieldOp) sum(old, delta int64) (result int64, overflowed bool) {
	least, most := int64(0), op.most()
	if op.signed {
		least = -most - 1
	}
	// The distances to both ends are unsigned and have up to 64 bits.
	over, under := delta > 0 && uint64(most-old) < uint64(delta), delta < 0 && uint64(old-least) < -uint64(delta)
	switch {
	case !over && !under:
		return old + delta, false
	case op.overflow != saturate:
		return op.signExtend(uint64(old) + uint64(delta)), true
	case over:
		return most, true
	}
	return least, true
}

// most returns the largest number that the field can hold.
func (op *fieldOp) most() int64 {
	if op.signed {
		return math.MaxInt64 >> (64 - op.width)
	}
	return math.MaxInt64 >> (63 - op.width)
}

// fieldsAtOnce is how many operations one run checks or executes: about 0.1 ms.
const fieldsAtOnce = 1024

// fields is a BITFIELD, of which first all operations are checked, and then executed.
type fields struct {
	count    int    // of the operations, checked so far
	end      uint64 // behind the last bit that they write; 0: they only read
	checked  bool   // all are
	begun    bool   // the first is executed
	done     int    // so many are
	next     int    // the argument with which the next run begins
	overflow overflow
	grown    bool // the value has got longer
	written  bool // an operation has changed it
}

// bitField: BITFIELD key [GET type offset | [OVERFLOW WRAP|SAT|FAIL] SET|INCRBY type offset
// value]..., and BITFIELD_RO
func bitField(r *exec.Request) {
	locks := r.LockElements()
	defer locks.Release()
	f := fields{next: 2}
	if before, again := locks.State.(*fields); again {
		f = *before
	}
	if !f.checked && !f.check(r) {
		return
	}
	if !f.checked {
		f.stop(&locks, f.count)
		return
	}
	t, _, ok := locks.At(locks.First)
	if !ok {
		f.stop(&locks, locks.First)
		return
	}
	value, ok := f.value(r, t)
	if !ok {
		return
	}
	if !f.begun {
		f.begun = true
		r.Out = resp.AppendArray(r.Out, f.count)
	}
	if !f.execute(r, value, min(fieldsAtOnce, f.count-f.done)) {
		return
	}
	if f.done == f.count {
		if f.written {
			r.Notify(keyevent.String, "setbit", r.Args[1])
		}
		locks.Whole()
		return
	}
	locks.Hold()
	f.stop(&locks, f.count+f.done)
}

// stop has the command go on later. The state is a copy, so that a short one allocates nothing.
func (f *fields) stop(locks *exec.KeyLocks, at int) {
	state := *f
	locks.State = &state
	locks.Stop(at, 0)
}

// check checks the next operations. If one cannot be executed, it answers the error and returns false.
func (f *fields) check(r *exec.Request) bool {
	ops, most := fieldOps{args: r.Args[f.next:], overflow: f.overflow}, fieldsAtOnce
	if r.Rewrite != nil {
		most = len(r.Args) // they were checked before, and another run would not have the value that was made
	}
	for range most {
		op, more, refusal := ops.next()
		if refusal != "" {
			r.Fail(refusal)
			return false
		}
		if !more {
			f.checked = true
			break
		}
		if op.kind != getField {
			f.end = max(f.end, op.at+uint64(op.width))
		}
		f.count++
	}
	f.next, f.overflow = len(r.Args)-len(ops.args), ops.overflow
	if f.checked {
		f.next, f.overflow = 2, wrap
	}
	if f.checked && f.end > 0 && r.Cmd.ID == command.BitFieldRO {
		r.Fail(errFieldReadOnly)
		return false
	}
	return true
}

// value returns the key's value, extended if the operations need that. It grows even if OVERFLOW
// FAIL then refuses them all. ok is false if the command is answered, or will run again.
func (f *fields) value(r *exec.Request, t engine.Txn) (value []byte, ok bool) {
	if f.end > 0 {
		value, grown, ok := bitsToWrite(r, t, int((f.end+7)/8))
		f.grown = f.grown || grown
		return value, ok
	}
	item, found, ok := r.FindString(t, r.Args[1])
	if !f.begun {
		r.Lookup(found, r.Args[1])
	}
	if ok && found {
		value = item.Value()
	}
	return value, ok
}

// execute executes and answers the next n operations, which were checked. It returns false if there
// is no room for the reply.
func (f *fields) execute(r *exec.Request, value []byte, n int) bool {
	ops := fieldOps{args: r.Args[f.next:], overflow: f.overflow}
	for range n {
		if !r.Room(exec.LineRoom) {
			return false
		}
		op, _, _ := ops.next()
		if n, changed, ok := op.executeAndSee(value); ok {
			f.written = f.written || op.kind != getField && (changed || f.grown)
			r.ReplyInt(n)
		} else {
			r.ReplyNull()
		}
	}
	f.done += n
	f.next, f.overflow = len(r.Args)-len(ops.args), ops.overflow
	return true
}
