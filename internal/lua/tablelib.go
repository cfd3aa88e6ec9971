package lua

// OpenTable adds the table library.
func OpenTable(s *State) {
	s.Register(s.Library("table"), map[string]HostFunction{
		"concat": tableConcat, "foreach": tableForEach, "foreachi": tableForEachI, "getn": tableGetN,
		"insert": tableInsert, "maxn": tableMaxN, "remove": tableRemove, "setn": tableSetN, "sort": tableSort,
	})
}

func tableConcat(c *Call) {
	t := c.CheckTable(1)
	separator := c.OptString(2, "")
	from := c.OptInt(3, 1)
	to := 0
	if c.Arg(4).isNil() {
		to = t.Length()
	} else {
		to = c.CheckInt(4)
	}
	out := growing{call: c}
	for i := from; i <= to; i++ {
		c.Spend(2)
		v := t.GetInt(i)
		if v.isString() {
			out.add(v.str())
		} else if v.isNumber() {
			out.add(FormatNumber(v.num()))
		} else {
			c.Errorf("invalid value (%s) at index %d in table for 'concat'", v.Kind(), i)
		}
		if i == to {
			break // to may be the largest integer
		}
		out.add(separator)
	}
	c.PushString(bytesAsString(out.text))
}

func tableForEach(c *Call) {
	t, fn := c.CheckTable(1), c.CheckFunction(2)
	for key := Nil; ; {
		k, v, ok := t.Next(key)
		if !ok {
			c.Errorf("invalid key to 'next'")
		}
		if k.isNil() {
			return
		}
		if result := c.Call(fn, k, v); !result.isNil() {
			c.Push(result)
			return
		}
		key = k
	}
}

func tableForEachI(c *Call) {
	t, fn := c.CheckTable(1), c.CheckFunction(2)
	for i := 1; i <= t.Length(); i++ {
		if result := c.Call(fn, Number(float64(i)), t.GetInt(i)); !result.isNil() {
			c.Push(result)
			return
		}
	}
}

func tableGetN(c *Call) { c.PushNumber(float64(c.CheckTable(1).Length())) }

func tableSetN(c *Call) {
	c.CheckTable(1)
	c.Errorf("'setn' is obsolete")
}

func tableMaxN(c *Call) {
	t := c.CheckTable(1)
	most := 0.0
	for key := Nil; ; {
		c.Spend(1)
		k, _, _ := t.Next(key)
		if k.isNil() {
			break
		}
		if k.isNumber() {
			most = max(most, k.num())
		}
		key = k
	}
	c.PushNumber(most)
}

func tableInsert(c *Call) {
	t := c.CheckTable(1)
	end := t.Length() + 1
	at := end
	switch c.args {
	case 2:
	case 3:
		at = int(int32(c.CheckInt(2)))
		end = max(end, at)
		for i := end; i > at; i-- {
			c.Spend(1)
			c.setElement(t, i, t.GetInt(i-1))
		}
	default:
		c.Errorf("wrong number of arguments to 'insert'")
	}
	c.setElement(t, at, c.Arg(c.args))
}

// setElement is t[i] = v as scripts may do it, without metamethods.
func (c *Call) setElement(t *Table, i int, v Value) {
	if t.readOnly {
		c.thread.failReadOnly()
	}
	t.SetInt(i, v)
}

func tableRemove(c *Call) {
	t := c.CheckTable(1)
	end := t.Length()
	at := c.OptInt(2, end)
	if at < 1 || at > end {
		return
	}
	c.Push(t.GetInt(at))
	for ; at < end; at++ {
		c.Spend(1)
		c.setElement(t, at, t.GetInt(at+1))
	}
	c.setElement(t, end, Nil)
}

// A sorter sorts a table by quicksort, in the same order of comparisons as Lua 5.1: which of two equal
// elements comes first, and what an inconsistent comparison leads to, can be seen by scripts.
type sorter struct {
	call  *Call
	table *Table
	less  Value // a function, or nil
}

func tableSort(c *Call) {
	t := c.CheckTable(1)
	if !c.Arg(2).isNil() {
		c.CheckFunction(2)
	}
	s := sorter{call: c, table: t, less: c.Arg(2)}
	s.sort(1, t.Length())
}

func (s *sorter) before(a, b Value) bool {
	s.call.Spend(4)
	if !s.less.isNil() {
		return s.call.Call(s.less, a, b).truthy()
	}
	return s.call.thread.less(a, b)
}

func (s *sorter) swap(i, j int) {
	a, b := s.table.GetInt(i), s.table.GetInt(j)
	s.call.setElement(s.table, i, b)
	s.call.setElement(s.table, j, a)
}

func (s *sorter) sort(low, high int) {
	t := s.table
	for low < high {
		if s.before(t.GetInt(high), t.GetInt(low)) {
			s.swap(low, high)
		}
		if high-low == 1 {
			return
		}
		middle := (low + high) / 2
		if s.before(t.GetInt(middle), t.GetInt(low)) {
			s.swap(middle, low)
		} else if s.before(t.GetInt(high), t.GetInt(middle)) {
			s.swap(middle, high)
		}
		if high-low == 2 {
			return
		}
		i := s.partition(low, high, middle)
		// The smaller part by recursion, the larger one by the loop: depth is logarithmic.
		if i-low < high-i {
			s.sort(low, i-1)
			low = i + 1
		} else {
			s.sort(i+1, high)
			high = i - 1
		}
	}
}

// partition puts what is less than the pivot, which is at middle, before it, and returns its new place.
func (s *sorter) partition(low, high, middle int) int {
	t := s.table
	pivot := t.GetInt(middle)
	s.swap(middle, high-1)
	i, j := low, high-1
	for {
		for i++; s.before(t.GetInt(i), pivot); i++ {
			if i > high {
				s.call.Errorf("invalid order function for sorting")
			}
		}
		for j--; s.before(pivot, t.GetInt(j)); j-- {
			if j < low {
				s.call.Errorf("invalid order function for sorting")
			}
		}
		if j < i {
			break
		}
		s.swap(i, j)
	}
	s.swap(high-1, i)
	return i
}
