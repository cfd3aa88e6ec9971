package lua

// Kind is the type of a Value, as type() names it.
type Kind uint8

// The kinds of Values.
const (
	KindNil Kind = iota
	KindBool
	KindNumber
	KindString
	KindTable
	KindFunction
	KindThread
	KindLight
)

func (k Kind) String() string {
	return [...]string{"nil", "boolean", "number", "string", "table", "function", "thread", "userdata"}[k]
}

// Nil, True and False are the Values of these names.
var (
	Nil   = Value{}
	True  = Bool(true)
	False = Bool(false)
)

// Kind is what kind of Value v is.
func (v Value) Kind() Kind {
	if v.isNumber() {
		return KindNumber
	}
	switch v.bits & 0xff {
	case kindBool:
		return KindBool
	case kindString:
		return KindString
	case kindTable:
		return KindTable
	case kindClosure, kindBuiltin:
		return KindFunction
	case kindThread:
		return KindThread
	case kindLight:
		return KindLight
	}
	return KindNil
}

// IsNil reports whether v is nil.
func (v Value) IsNil() bool { return v.isNil() }

// Truthy reports whether v counts as true: it is neither nil nor false.
func (v Value) Truthy() bool { return v.truthy() }

// AsNumber is the number that v is. A string is not converted; ToNumber does that.
func (v Value) AsNumber() (float64, bool) {
	if v.isNumber() {
		return v.num(), true
	}
	return 0, false
}

// AsString is the string that v is, without a copy. A number is not converted; ToString does that.
func (v Value) AsString() (string, bool) {
	if v.isString() {
		return v.str(), true
	}
	return "", false
}

// AsTable is the table that v is.
func (v Value) AsTable() (*Table, bool) {
	if v.isTable() {
		return v.table(), true
	}
	return nil, false
}

// ToNumber is the number that v is or, as a string, denotes.
func (v Value) ToNumber() (float64, bool) {
	if v.isNumber() {
		return v.num(), true
	}
	if v.isString() {
		return ParseNumber(v.str())
	}
	return 0, false
}

// ToString is the string that v is or, as a number, is written as.
func (v Value) ToString() (string, bool) {
	if v.isString() {
		return v.str(), true
	}
	if v.isNumber() {
		return FormatNumber(v.num()), true
	}
	return "", false
}

// IsFunction reports whether v is a function.
func (v Value) IsFunction() bool { return v.isFunction() }

func (v Value) isFunction() bool { return v.isKind(kindClosure) || v.isKind(kindBuiltin) }
