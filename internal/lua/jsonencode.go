package lua

import (
	"math"
)

// A jsonEncoder writes a value as cjson does.
type jsonEncoder struct {
	growing
	*jsonSettings
	slots int // of C Lua's stack, which bounds the nesting whatever the settings say
}

// maxCSlots is how many slots of its stack C Lua gives a function.
const maxCSlots = 8000

func jsonEncode(c *Call, settings *jsonSettings) {
	if c.Len() != 1 {
		c.ArgError(1, "expected 1 argument")
	}
	e := jsonEncoder{growing: growing{call: c}, jsonSettings: settings, slots: 1}
	e.value(c.Arg(1), 0)
	c.PushString(bytesAsString(e.text))
}

func (e *jsonEncoder) value(v Value, depth int) {
	e.call.Spend(4)
	switch v.Kind() {
	case KindNil:
		e.add("null")
	case KindBool:
		if v.truthy() {
			e.add("true")
		} else {
			e.add("false")
		}
	case KindNumber:
		e.number(v.num())
	case KindString:
		e.string(v.str())
	case KindTable:
		e.table(v.table(), depth+1)
	default:
		if v != jsonNullValue {
			e.fail(v, "type not supported")
		}
		e.add("null")
	}
}

func (e *jsonEncoder) fail(v Value, problem string) {
	e.call.Errorf("Cannot serialise %s: %s", v.Kind(), problem)
}

func (e *jsonEncoder) number(n float64) {
	if math.IsNaN(n) || math.IsInf(n, 0) {
		e.invalidNumber(n)
		return
	}
	e.call.Spend(stepsOfNumber)
	if e.precision == jsonDefaults.precision {
		e.add(FormatNumber(n))
		return
	}
	var buf [32]byte
	e.add(bytesAsString(appendGeneral(buf[:0], n, e.precision, false)))
}

func (e *jsonEncoder) invalidNumber(n float64) {
	switch {
	case e.encodeInvalid == jsonRefuse:
		e.fail(Number(n), "must not be NaN or Inf")
	case e.encodeInvalid == jsonNull:
		e.add("null")
	case math.IsNaN(n):
		e.add("nan")
	default:
		e.add(FormatNumber(n))
	}
}

func (e *jsonEncoder) string(s string) {
	e.add(`"`)
	from := 0
	for i := range len(s) {
		if escape := jsonEscapes[s[i]]; escape != "" {
			e.add(s[from:i])
			e.add(escape)
			e.call.Spend(4)
			from = i + 1
		}
	}
	e.add(s[from:])
	e.add(`"`)
	e.call.Spend(len(s) >> 2)
}

// jsonEscapes are how the bytes are written that cannot stand for themselves.
var jsonEscapes = func() (escapes [256]string) {
	const hex = "0123456789abcdef"
	for b := range 0x20 {
		escapes[b] = `\u00` + hex[b>>4:b>>4+1] + hex[b&15:b&15+1]
	}
	escapes[0x7f] = `\u007f`
	for b, escape := range map[byte]string{
		'\b': `\b`, '\t': `\t`, '\n': `\n`, '\f': `\f`, '\r': `\r`, '"': `\"`, '/': `\/`, '\\': `\\`,
	} {
		escapes[b] = escape
	}
	return escapes
}()

func (e *jsonEncoder) table(t *Table, depth int) {
	if depth > e.encodeDepth || e.slots+3 > maxCSlots {
		e.call.Errorf("Cannot serialise, excessive nesting (%d)", depth)
	}
	if length := e.arrayLength(t); length > 0 {
		e.slots++
		e.array(t, length, depth)
		e.slots--
		return
	}
	e.slots += 2
	e.object(t, depth)
	e.slots -= 2
}

// arrayLength is the last index of t, or not positive if t becomes an object: it has other keys, or is too
// sparse, or empty. It counts in 32 bits, as cjson does: an index beyond becomes the least integer.
func (e *jsonEncoder) arrayLength(t *Table) int {
	last, elements := int32(0), int32(0)
	for key := range t.entries() {
		k, ok := key.AsNumber()
		if !ok || k < 1 || k != math.Floor(k) {
			return -1
		}
		if k > float64(last) {
			if last = math.MinInt32; k <= math.MaxInt32 {
				last = int32(k)
			}
		}
		elements++
	}
	tooSparse := e.sparseRatio > 0 && last > elements*int32(e.sparseRatio) && int(last) > e.sparseSafe
	if !tooSparse {
		return int(last)
	}
	if e.sparseConvert == 0 {
		e.fail(TableValue(t), "excessively sparse array")
	}
	return -1
}

func (e *jsonEncoder) array(t *Table, length, depth int) {
	e.add("[")
	for i := 1; i <= length; i++ {
		if i > 1 {
			e.add(",")
		}
		e.value(t.GetInt(i), depth)
	}
	e.add("]")
}

func (e *jsonEncoder) object(t *Table, depth int) {
	e.add("{")
	first := true
	for key, v := range t.entries() {
		if !first {
			e.add(",")
		}
		first = false
		switch key.Kind() {
		case KindNumber:
			e.add(`"`)
			e.number(key.num())
			e.add(`":`)
		case KindString:
			e.string(key.str())
			e.add(":")
		default:
			e.fail(key, "table key must be a number or string")
		}
		e.value(v, depth)
	}
	e.add("}")
}
