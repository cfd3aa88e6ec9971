package lua

import (
	"strings"
	"unicode/utf8"
)

// A jsonDecoder reads a value as cjson does, with its messages.
type jsonDecoder struct {
	call *Call
	*jsonSettings
	text  string
	at    int // in text
	depth int
	slots int // of C Lua's stack, which bounds the nesting whatever the settings say
	buf   []byte
}

// A jsonToken is what a jsonDecoder finds next.
type jsonToken struct {
	kind  jsonKind
	at    int    // where it begins, or where the error is
	value Value  // of strings, numbers, booleans and null
	err   string // of an error, why
}

// A jsonKind is a kind of token.
type jsonKind uint8

const (
	jsonObjectBegin jsonKind = iota + 1
	jsonObjectEnd
	jsonArrayBegin
	jsonArrayEnd
	jsonString
	jsonNumber
	jsonBool
	jsonNullKind
	jsonColon
	jsonComma
	jsonEnd
	jsonError
)

// String is the name that messages have for it.
func (k jsonKind) String() string {
	return [...]string{
		"", "T_OBJ_BEGIN", "T_OBJ_END", "T_ARR_BEGIN", "T_ARR_END", "T_STRING", "T_NUMBER", "T_BOOLEAN", "T_NULL",
		"T_COLON", "T_COMMA", "T_END", "T_ERROR",
	}[k]
}

func jsonDecode(c *Call, settings *jsonSettings) {
	if c.Len() != 1 {
		c.ArgError(1, "expected 1 argument")
	}
	text := c.CheckString(1)
	if len(text) >= 2 && (text[0] == 0 || text[1] == 0) {
		c.Errorf("JSON parser does not support UTF-16 or UTF-32")
	}
	if end := strings.IndexByte(text, 0); end >= 0 {
		text = text[:end] // as for C, for which a string ends at its first zero byte
	}
	c.Spend(len(text) >> 6)
	d := jsonDecoder{call: c, jsonSettings: settings, text: text, slots: 1}
	token := d.next()
	v := d.value(&token)
	if token = d.next(); token.kind != jsonEnd {
		d.fail("the end", &token)
	}
	c.Push(v)
}

// fail raises the error that the token is not what is expected.
func (d *jsonDecoder) fail(expected string, token *jsonToken) {
	found := token.kind.String()
	if token.kind == jsonError {
		found = token.err
	}
	d.call.Errorf("Expected %s but found %s at character %d", expected, found, token.at+1)
}

// value is the value that begins with token.
func (d *jsonDecoder) value(token *jsonToken) Value {
	switch token.kind {
	case jsonString, jsonNumber, jsonBool, jsonNullKind:
		return token.value
	case jsonObjectBegin:
		return d.object()
	case jsonArrayBegin:
		return d.array()
	}
	d.fail("value", token)
	return Nil
}

// descend goes one level deeper, where C Lua would need as many slots.
func (d *jsonDecoder) descend(slots int) {
	d.depth++
	if d.depth > d.decodeDepth || d.slots+slots > maxCSlots {
		d.call.Errorf("Found too many nested data structures (%d) at character %d", d.depth, d.at)
	}
	d.slots += slots - 1
}

func (d *jsonDecoder) ascend(slots int) {
	d.depth--
	d.slots -= slots - 1
}

func (d *jsonDecoder) object() Value {
	const slots = 3 // table, key, value
	d.descend(slots)
	defer d.ascend(slots)
	t := d.call.State().NewTable(0, 0)
	token := d.next()
	if token.kind == jsonObjectEnd {
		return TableValue(t)
	}
	for {
		if token.kind != jsonString {
			d.fail("object key string", &token)
		}
		key := token.value
		if token = d.next(); token.kind != jsonColon {
			d.fail("colon", &token)
		}
		token = d.next()
		t.Set(key, d.value(&token))
		if token = d.next(); token.kind == jsonObjectEnd {
			return TableValue(t)
		}
		if token.kind != jsonComma {
			d.fail("comma or object end", &token)
		}
		token = d.next()
	}
}

func (d *jsonDecoder) array() Value {
	const slots = 2 // table, value
	d.descend(slots)
	defer d.ascend(slots)
	t := d.call.State().NewTable(0, 0)
	token := d.next()
	if token.kind == jsonArrayEnd {
		return TableValue(t)
	}
	for i := 1; ; i++ {
		t.SetInt(i, d.value(&token))
		if token = d.next(); token.kind == jsonArrayEnd {
			return TableValue(t)
		}
		if token.kind != jsonComma {
			d.fail("comma or array end", &token)
		}
		token = d.next()
	}
}

// next reads a token.
func (d *jsonDecoder) next() jsonToken {
	from := d.at
	for d.at < len(d.text) && isJSONSpace(d.text[d.at]) {
		d.at++
	}
	d.call.Spend(4 + d.at - from)
	if d.at == len(d.text) {
		return jsonToken{kind: jsonEnd, at: d.at}
	}
	if kind := jsonPunctuation[d.text[d.at]]; kind != 0 {
		d.at++
		return jsonToken{kind: kind, at: d.at - 1}
	}
	rest := d.text[d.at:]
	switch b := rest[0]; {
	case b == '"':
		return d.string()
	case b == '-' || isDigit(b):
		if d.decodeInvalid == 0 && isInvalidJSONNumber(rest) {
			return d.error("invalid number")
		}
		return d.number(rest)
	case strings.HasPrefix(rest, "true"):
		return d.word(jsonBool, True, 4)
	case strings.HasPrefix(rest, "false"):
		return d.word(jsonBool, False, 5)
	case strings.HasPrefix(rest, "null"):
		return d.word(jsonNullKind, jsonNullValue, 4)
	case d.decodeInvalid != 0 && isInvalidJSONNumber(rest):
		return d.number(rest)
	}
	return d.error("invalid token")
}

func isJSONSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

var jsonPunctuation = [256]jsonKind{
	'{': jsonObjectBegin, '}': jsonObjectEnd, '[': jsonArrayBegin, ']': jsonArrayEnd, ':': jsonColon, ',': jsonComma,
}

func (d *jsonDecoder) error(problem string) jsonToken {
	return jsonToken{kind: jsonError, at: d.at, err: problem}
}

func (d *jsonDecoder) word(kind jsonKind, v Value, length int) jsonToken {
	d.at += length
	return jsonToken{kind: kind, at: d.at - length, value: v}
}

// isInvalidJSONNumber reports whether text begins with what strtod takes and JSON does not: a plus sign, a
// leading zero, hexadecimal digits, infinity, NaN.
func isInvalidJSONNumber(text string) bool {
	if text[0] == '+' {
		return true
	}
	text = strings.TrimPrefix(text, "-")
	if strings.HasPrefix(text, "0") {
		return len(text) > 1 && (text[1]|0x20 == 'x' || isDigit(text[1]))
	}
	return text != "" && !isDigit(text[0]) && (hasPrefixFold(text, "inf") || hasPrefixFold(text, "nan"))
}

func (d *jsonDecoder) number(text string) jsonToken {
	n, length := shortDigits(text)
	if length == 0 {
		var rest string
		n, rest = strtod(text)
		length = len(text) - len(rest)
	}
	if length == 0 {
		return d.error("invalid number")
	}
	d.call.Spend(16 + length)
	return d.word(jsonNumber, Number(n), length)
}

// shortDigits is the fast path of strtod: the decimal digits that text begins with, if they are a few and the number
// ends there. Otherwise length is 0.
func shortDigits(text string) (n float64, length int) {
	value := int64(0)
	for length < len(text) && isDigit(text[length]) {
		if length == 15 {
			return 0, 0
		}
		value = value*10 + int64(text[length]-'0')
		length++
	}
	if length < len(text) && (text[length] == '.' || isAlpha(text[length])) {
		return 0, 0
	}
	return float64(value), length
}

// string reads a string whose opening quote is next.
func (d *jsonDecoder) string() jsonToken {
	begin := d.at
	d.at++
	d.buf = d.buf[:0]
	for {
		plain := d.plain()
		switch {
		case d.at == len(d.text):
			return d.error("unexpected end of string")
		case d.text[d.at] == '\\':
			d.append(plain)
			if problem := d.escape(); problem != "" {
				return d.error(problem)
			}
			continue
		}
		d.at++
		var v Value
		if len(d.buf) == 0 {
			v = d.call.State().copyString(plain)
		} else {
			d.append(plain)
			v = d.call.State().NewString(d.buf)
		}
		return jsonToken{kind: jsonString, at: begin, value: v}
	}
}

// plain reads what comes before the next quote, backslash or end.
func (d *jsonDecoder) plain() string {
	rest := d.text[d.at:]
	end := 0
	for end < len(rest) && rest[end] != '"' && rest[end] != '\\' {
		end++
	}
	d.at += end
	d.call.Spend(end >> 2)
	return rest[:end]
}

// append adds s to the string that is being read.
func (d *jsonDecoder) append(s string) {
	if need := len(d.buf) + len(s); need > cap(d.buf) {
		size := max(2*need, 64)
		d.call.Charge(size)
		d.buf = append(make([]byte, 0, size), d.buf...)
	}
	d.buf = append(d.buf, s...)
	d.call.Spend(4 + len(s)>>5)
}

// escape reads what a backslash begins. It returns what is wrong with it, if anything.
func (d *jsonDecoder) escape() (problem string) {
	rest := d.text[d.at:]
	if len(rest) < 2 {
		return "invalid escape code"
	}
	if rest[1] == 'u' {
		return d.unicodeEscape(rest)
	}
	i := strings.IndexByte(`"\/btnfr`, rest[1])
	if i < 0 {
		return "invalid escape code"
	}
	d.append("\"\\/\b\t\n\f\r"[i : i+1])
	d.at += 2
	return ""
}

// unicodeEscape reads \uXXXX, or a pair of them that is one character.
func (d *jsonDecoder) unicodeEscape(rest string) (problem string) {
	const invalid = "invalid unicode escape code"
	r, ok := hex4(rest)
	if !ok {
		return invalid
	}
	length := 6
	if r&0xf800 == 0xd800 {
		low, ok := hex4(rest[6:])
		if r&0x400 != 0 || !ok || low&0xfc00 != 0xdc00 {
			return invalid
		}
		r = (r&0x3ff<<10 | low&0x3ff) + 0x10000
		length = 12
	}
	var utf [utf8.UTFMax]byte
	d.append(bytesAsString(utf8.AppendRune(utf[:0], r)))
	d.at += length
	return ""
}

// hex4 is the number that \uXXXX at the beginning of text denotes.
func hex4(text string) (r rune, ok bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	for i := 2; i < 6; i++ {
		if !isHexDigit(text[i]) {
			return 0, false
		}
		r = r<<4 | rune(digitValue(text[i]))
	}
	return r, true
}
