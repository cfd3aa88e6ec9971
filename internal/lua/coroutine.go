package lua

// Coroutines need no goroutines: each has a stack of its own, and the machine goes on with another one.
// As in Lua 5.1, a coroutine cannot yield across a function of the host that calls back (pcall,
// table.sort, a metamethod …): the calls of Go in between have no other place to wait.

type threadStatus uint8

const (
	threadNew threadStatus = iota
	threadSuspended
	threadRunning
	threadNormal // it has resumed another one
	threadDead
)

var statusNames = [...]string{"suspended", "suspended", "running", "normal", "dead"}

func openCoroutine(s *State) {
	s.Register(s.Library("coroutine"), map[string]HostFunction{
		"create": coroutineCreate, "resume": coroutineResume, "running": coroutineRunning,
		"status": coroutineStatus, "wrap": coroutineWrap, "yield": coroutineYield,
	})
}

func (c *Call) newCoroutine() *thread {
	fn := c.Arg(1)
	if !fn.isKind(kindClosure) {
		c.ArgError(1, "Lua function expected")
	}
	t := c.thread.state.newThread()
	t.push(fn)
	return t
}

func coroutineCreate(c *Call) { c.Push(threadValue(c.newCoroutine())) }

func (c *Call) checkThread() *thread {
	v := c.Arg(1)
	if !v.isKind(kindThread) {
		c.ArgError(1, "coroutine expected")
	}
	return v.thread()
}

func coroutineStatus(c *Call) { c.PushString(statusNames[c.checkThread().status]) }

func coroutineRunning(c *Call) {
	if t := c.thread; t.resumer != nil {
		c.Push(threadValue(t))
	} else {
		c.Push(Nil)
	}
}

func coroutineResume(c *Call) {
	t := c.checkThread()
	status := c.thread.top
	c.Push(True)
	if failure := c.resume(t, c.Args()[1:]); failure != nil {
		c.thread.stack[status] = False
		c.thread.top = status + 1
		c.Push(failure.Value)
	}
}

func coroutineWrap(c *Call) {
	t := c.newCoroutine()
	c.Push(c.thread.state.Function(func(c *Call) {
		failure := c.resume(c.Captured(0).thread(), c.Args())
		if failure == nil {
			return
		}
		if v := failure.Value; v.isString() {
			c.Errorf("%s", v.str())
		}
		throw(failure.Value)
	}, threadValue(t)))
}

// resume lets t run with args until it yields or ends, and pushes what it passes on.
func (c *Call) resume(t *thread, args []Value) *Error {
	if t.status > threadSuspended {
		return &Error{Value: String("cannot resume " + statusNames[t.status] + " coroutine")}
	}
	from, s := c.thread, c.thread.state
	s.spend(stepsOfCall)
	inHost, held := s.inHost, s.held
	from.status, s.running = threadNormal, t
	t.resumer, t.outside, t.nested = from, from.nested, from.nested
	failure := t.proceed(args)
	t.resumer, s.running, from.status = nil, from, threadRunning
	s.inHost, s.held = inHost, held
	if failure != nil {
		t.status = threadDead
		t.closeUpvalues(0)
		if failure.Cause != nil {
			panic(failure)
		}
		return failure
	}
	results := t.stack[t.top-t.passed() : t.top]
	s.spend(len(results))
	for _, v := range results {
		c.Push(v)
	}
	if !t.yielded {
		t.status = threadDead
		t.stack, t.top, t.high = t.stack[:0], 0, 0
		return nil
	}
	t.status, t.yielded = threadSuspended, false
	return nil
}

// passed is how many values t has yielded or returned: those behind the arguments of yield, or all.
func (t *thread) passed() int {
	if t.yielded {
		return t.frame.call.args
	}
	return t.top
}

// proceed runs t from its beginning or from behind the yield that it waits in.
func (t *thread) proceed(args []Value) (failure *Error) {
	s := t.state
	fresh := t.status == threadNew
	t.status = threadRunning
	t.ensure(t.top + len(args))
	at := t.top
	copy(t.stack[at:], args)
	if fresh {
		t.top = at + len(args)
		return t.try(0, len(args), allResults)
	}
	defer func() {
		if recovered := recover(); recovered != nil {
			thrown, ok := recovered.(*Error)
			if !ok {
				panic(recovered)
			}
			failure = thrown
		}
	}()
	t.nested++
	s.inHost = false
	t.finish(t.frame, at, len(args))
	t.execute()
	t.nested--
	return nil
}

func coroutineYield(c *Call) {
	t := c.thread
	if t.resumer == nil || t.nested != t.outside+1 {
		t.failf("attempt to yield across metamethod/C-call boundary")
	}
	t.yielded = true
}
