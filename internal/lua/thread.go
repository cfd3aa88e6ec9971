package lua

// A closure is a function of Lua together with the variables that it captured.
type closure struct {
	proto    *Prototype
	upvalues []*upvalue
	env      *Table // where its global variables are
	id       uint32
	seen     uint32
}

// An upvalue is a variable that closures share. While its function runs, place is a slot of the stack
// (open); then the value moves here.
type upvalue struct {
	place  *Value
	closed Value
	next   *upvalue // open upvalues, from the top of the stack down
	index  int      // of the slot, while it is open
	seen   uint32
}

// A builtin is a function of the host.
type builtin struct {
	function HostFunction
	captured []Value
	id       uint32
	seen     uint32
}

const (
	closureSize = 64
	upvalueSize = 64
	frameSize   = 160
)

// Limits of Lua 5.1.
const (
	maxFrames  = 20_000
	maxHost    = 200 // calls from Go to the machine within each other
	allResults = -1
)

// window is how many registers an instruction can name. The stack always has that many slots above a
// frame's base, so that access to a register needs no check of bounds.
const window = 256

// A frame is a call that is under way. Frames are kept for reuse, so a pointer to one stays valid.
type frame struct {
	outer, inner *frame
	closure      *closure // nil: a function of the host
	builtin      *builtin
	slot         int // of the function; its results go there
	base         int // register 0, or the first argument
	pc           int // the next instruction, stored before anything that may fail or call
	wanted       int // results, or allResults
	varargs      int // they lie below base
	tails        int // calls that tail calls have replaced
	entry        bool
	call         Call
}

// A thread is a stack and the calls on it: the main one, or a coroutine.
type thread struct {
	state      *State
	stack      []Value
	top        int // behind the last value, while a number of values is not fixed, and in host functions
	high       int // no slot from here on was ever used
	frame      *frame
	first      *frame
	depth      int // of frames
	frameCount int // frames that exist
	nested     int // calls from Go within each other
	open       *upvalue

	resumer *thread
	status  threadStatus
	outside int // nested calls from Go when it was resumed
	id      uint32
	seen    uint32
	yielded bool
}

func (s *State) newThread() *thread {
	s.charge(threadSize)
	t := &thread{state: s, id: s.newID()}
	t.stack = make([]Value, 2*window)
	t.first = &frame{}
	t.first.call = Call{thread: t, frame: t.first}
	return t
}

const threadSize = 2*window*valueSize + 256 + frameSize

// reset makes t as new, after an error too.
func (t *thread) reset() {
	t.closeUpvalues(0)
	t.frame, t.depth, t.nested = nil, 0, 0
	t.yielded = false
	if len(t.stack) > 16*window {
		t.stack = make([]Value, 2*window)
	} else {
		clear(t.stack[:t.high])
	}
	t.high = 0
	for f := t.first; f != nil && (f.closure != nil || f.builtin != nil); f = f.inner {
		f.closure, f.builtin = nil, nil // which may keep much alive
	}
	if t.frameCount > 1000 {
		t.first.inner = nil
		t.frameCount = 0
	}
	t.top = 0
}

// liveTop is the first slot that is free for calls out of the running function.
func (t *thread) liveTop() int {
	f := t.frame
	if f == nil || f.closure == nil {
		return t.top
	}
	return max(f.base+f.closure.proto.registers, t.top)
}

// ensure makes the stack at least n slots long, plus a window.
func (t *thread) ensure(n int) {
	if n > t.high {
		t.high = n
		if n+window > len(t.stack) {
			t.growStack(n + window)
		}
	}
}

func (t *thread) growStack(n int) {
	if n > maxStack {
		t.failf("stack overflow")
	}
	size := max(2*len(t.stack), n)
	t.state.charge((size - len(t.stack)) * valueSize)
	stack := make([]Value, size)
	copy(stack, t.stack)
	t.stack = stack
	for u := t.open; u != nil; u = u.next {
		u.place = &stack[u.index]
	}
}

const maxStack = 1 << 20

func (t *thread) push(v Value) {
	t.ensure(t.top + 1)
	t.stack[t.top] = v
	t.top++
}

// pushFrame begins a call.
func (t *thread) pushFrame(slot, base, wanted int) *frame {
	var f *frame
	if t.frame == nil {
		f = t.first
	} else if f = t.frame.inner; f == nil {
		f = t.newFrame()
	}
	t.depth++
	f.slot, f.base, f.wanted = slot, base, wanted
	f.tails, f.entry, f.varargs = 0, false, 0
	t.frame = f
	return f
}

func (t *thread) newFrame() *frame {
	if t.depth >= maxFrames {
		t.failf("stack overflow")
	}
	t.state.charge(frameSize)
	f := &frame{outer: t.frame}
	f.call = Call{thread: t, frame: f}
	t.frame.inner = f
	t.frameCount++
	return f
}

// findUpvalue is the upvalue of a slot, which closures share.
func (t *thread) findUpvalue(index int) *upvalue {
	at := &t.open
	for *at != nil && (*at).index > index {
		at = &(*at).next
	}
	if *at != nil && (*at).index == index {
		return *at
	}
	t.state.charge(upvalueSize)
	u := &upvalue{place: &t.stack[index], index: index, next: *at}
	*at = u
	return u
}

// closeUpvalues ends the scope of the slots from index upwards.
func (t *thread) closeUpvalues(index int) {
	for t.open != nil && t.open.index >= index {
		u := t.open
		t.open = u.next
		u.closed = *u.place
		u.place = &u.closed
		u.next = nil
	}
}

func (s *State) newClosure(p *Prototype, env *Table) *closure {
	s.charge(closureSize + 8*len(p.upvalues))
	c := &closure{proto: p, env: env, id: s.newID()}
	if len(p.upvalues) > 0 {
		c.upvalues = make([]*upvalue, len(p.upvalues))
	}
	return c
}

// capture makes a closure of p within the frame f.
func (t *thread) capture(f *frame, p *Prototype) Value {
	c := t.state.newClosure(p, f.closure.env)
	for i, from := range p.upvalues {
		if from.fromRegister {
			c.upvalues[i] = t.findUpvalue(f.base + int(from.index))
		} else {
			c.upvalues[i] = f.closure.upvalues[from.index]
		}
	}
	return closureValue(c)
}
