package lua

// compile compiles source at the expense of the script's budgets.
func (c *Call) compile(name, source string) {
	c.Charge(1000 + min(len(name), maxName) + len(source)*CompileCost)
	c.Spend(1000 + len(source)*CompileCost)
	proto, err := Compile(name, source)
	if err != nil {
		c.Push(Nil)
		c.PushString(err.Error())
		return
	}
	c.Push(c.thread.state.Load(proto))
}

func baseLoadString(c *Call) {
	source := c.CheckString(1)
	c.compile(c.OptString(2, source), source)
}

// baseLoad compiles the pieces that a function returns.
func baseLoad(c *Call) {
	fn := c.CheckFunction(1)
	name := c.OptString(2, "=(load)")
	var source []byte
	for {
		v := c.Call(fn)
		if v.isNil() {
			break
		}
		piece, ok := v.ToString()
		if !ok {
			c.Push(Nil)
			c.PushString("reader function must return a string")
			return
		}
		if piece == "" {
			break
		}
		c.Charge(2 * len(piece))
		source = append(source, piece...)
	}
	c.compile(name, bytesAsString(source))
}

// environment is the function that argument 1 names: itself, or the level of a call.
func (c *Call) environment(otherwise int) (fn Value, level int) {
	if v := c.Arg(1); v.isFunction() {
		return v, -1
	}
	level = c.OptInt(1, otherwise)
	if level < 0 {
		c.ArgError(1, "level must be non-negative")
	}
	f := c.thread.level(level)
	if f == nil {
		c.ArgError(1, "invalid level")
	}
	if f.closure == nil {
		return Nil, level
	}
	return closureValue(f.closure), level
}

func baseGetFEnv(c *Call) {
	fn, level := c.environment(1)
	if level != 0 && fn.isKind(kindClosure) {
		c.Push(TableValue(fn.closure().env))
		return
	}
	c.Push(TableValue(c.thread.state.Globals))
}

func baseSetFEnv(c *Call) {
	env := c.CheckTable(2)
	fn, level := c.environment(1)
	if level == 0 || !fn.isKind(kindClosure) {
		c.Errorf("'setfenv' cannot change environment of given object")
	}
	fn.closure().env = env
	c.Push(fn)
}
