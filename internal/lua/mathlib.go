package lua

import "math"

// OpenMath adds the math library.
func OpenMath(s *State) {
	lib := s.Library("math")
	functions := map[string]HostFunction{
		"atan2": mathBinary(math.Atan2), "fmod": mathBinary(math.Mod), "mod": mathBinary(math.Mod),
		"pow": mathBinary(power), "frexp": mathFrexp, "ldexp": mathLdexp, "max": mathMax, "min": mathMin,
		"modf": mathModf, "random": mathRandom, "randomseed": mathRandomSeed,
	}
	for name, f := range map[string]func(float64) float64{
		"abs": math.Abs, "acos": math.Acos, "asin": math.Asin, "atan": math.Atan, "ceil": math.Ceil, "cos": math.Cos,
		"cosh": math.Cosh, "exp": math.Exp, "floor": math.Floor, "log": math.Log, "log10": math.Log10,
		"sin": math.Sin, "sinh": math.Sinh, "sqrt": math.Sqrt, "tan": math.Tan, "tanh": math.Tanh,
		"deg": func(n float64) float64 { return n / (math.Pi / 180) },
		"rad": func(n float64) float64 { return n * (math.Pi / 180) },
	} {
		functions[name] = mathUnary(f, name == "acos" || name == "asin" || name == "log10")
	}
	s.Register(lib, functions)
	lib.SetString("pi", Number(math.Pi))
	lib.SetString("huge", Number(math.Inf(1)))
}

// OpenOS adds os.clock, which asks State.Clock. Nothing else of that library can be had.
func OpenOS(s *State) {
	s.Register(s.Library("os"), map[string]HostFunction{"clock": func(c *Call) {
		if clock := c.thread.state.Clock; clock != nil {
			c.PushNumber(clock())
			return
		}
		c.PushNumber(0)
	}})
}

// mathUnary makes a function of f. Where its result is not defined it is a NaN of the sign that it has
// in glibc on amd64: scripts that write it out can see it.
func mathUnary(f func(float64) float64, positive bool) HostFunction {
	return func(c *Call) {
		n := c.CheckNumber(1)
		result := f(n)
		if math.IsNaN(result) && !math.IsNaN(n) {
			result = invalid()
			if positive {
				result = -result
			}
		}
		c.PushNumber(result)
	}
}

func mathBinary(f func(a, b float64) float64) HostFunction {
	return func(c *Call) {
		a, b := c.CheckNumber(1), c.CheckNumber(2)
		result := f(a, b)
		if math.IsNaN(result) && !math.IsNaN(a) && !math.IsNaN(b) {
			result = invalid()
		}
		c.PushNumber(result)
	}
}

func mathFrexp(c *Call) {
	fraction, exponent := math.Frexp(c.CheckNumber(1))
	c.PushNumber(fraction)
	c.PushNumber(float64(exponent))
}

func mathLdexp(c *Call) {
	n := c.CheckNumber(1)
	c.PushNumber(math.Ldexp(n, int(int32(c.CheckInt(2)))))
}

func mathModf(c *Call) {
	n := c.CheckNumber(1)
	whole, fraction := math.Trunc(n), 0.0
	if !math.IsInf(n, 0) {
		fraction = n - whole
	}
	c.PushNumber(whole)
	c.PushNumber(math.Copysign(fraction, n))
}

func mathMax(c *Call) {
	most := c.CheckNumber(1)
	for i := 2; i <= c.args; i++ {
		if n := c.CheckNumber(i); n > most {
			most = n
		}
	}
	c.PushNumber(most)
}

func mathMin(c *Call) {
	least := c.CheckNumber(1)
	for i := 2; i <= c.args; i++ {
		if n := c.CheckNumber(i); n < least {
			least = n
		}
	}
	c.PushNumber(least)
}

func mathRandom(c *Call) {
	r := c.thread.state.random.float()
	switch c.args {
	case 0:
		c.PushNumber(r)
	case 1:
		high := int(int32(c.CheckInt(1)))
		if high < 1 {
			c.ArgError(1, "interval is empty")
		}
		c.PushNumber(math.Floor(r*float64(high)) + 1)
	case 2:
		low, high := int(int32(c.CheckInt(1))), int(int32(c.CheckInt(2)))
		if low > high {
			c.ArgError(2, "interval is empty")
		}
		c.PushNumber(math.Floor(r*float64(high-low+1)) + float64(low))
	default:
		c.Errorf("wrong number of arguments")
	}
}

func mathRandomSeed(c *Call) { c.thread.state.random.seed(int32(c.CheckInt(1))) }
