package lua

import (
	"fmt"
	"strings"
)

// token is a kind of token. One character stands for itself; the others come after these.
type token int32

const (
	tokAnd token = 256 + iota
	tokBreak
	tokDo
	tokElse
	tokElseif
	tokEnd
	tokFalse
	tokFor
	tokFunction
	tokIf
	tokIn
	tokLocal
	tokNil
	tokNot
	tokOr
	tokRepeat
	tokReturn
	tokThen
	tokTrue
	tokUntil
	tokWhile
	tokConcat
	tokDots
	tokEq
	tokGe
	tokLe
	tokNe
	tokNumber
	tokName
	tokString
	tokEOF
)

var tokenTexts = [...]string{
	"and", "break", "do", "else", "elseif", "end", "false", "for", "function", "if", "in", "local", "nil", "not",
	"or", "repeat", "return", "then", "true", "until", "while",
	"..", "...", "==", ">=", "<=", "~=", "<number>", "<name>", "<string>", "<eof>",
}

var reserved = func() map[string]token {
	words := map[string]token{}
	for i, text := range tokenTexts[:tokWhile-tokAnd+1] {
		words[text] = tokAnd + token(i)
	}
	return words
}()

func (t token) String() string {
	if t >= tokAnd {
		return tokenTexts[t-tokAnd]
	}
	if isControl(byte(t)) {
		return fmt.Sprintf("char(%d)", t)
	}
	return string([]byte{byte(t)})
}

// A lexer cuts source into tokens. It looks one token ahead when the parser asks.
type lexer struct {
	chunk  string // as it is shown in messages
	source string
	at     int // of the next character
	start  int // of the current token, for messages

	line     int // of the current token's end
	lastLine int // of the token before

	tok  token
	text string  // of a name or string
	num  float64 // of a number

	ahead *lookahead
}

// lookahead is the token behind the current one.
type lookahead struct {
	tok  token
	text string
	num  float64
}

// next makes the token behind the current one the current one.
func (l *lexer) next() {
	l.lastLine = l.line
	if l.ahead != nil {
		l.tok, l.text, l.num = l.ahead.tok, l.ahead.text, l.ahead.num
		l.ahead = nil
		return
	}
	l.tok = l.scan()
}

// peek is the token behind the current one, which stays.
func (l *lexer) peek() token {
	if l.ahead == nil {
		tok, text, num := l.tok, l.text, l.num
		next := l.scan()
		l.ahead = &lookahead{next, l.text, l.num}
		l.tok, l.text, l.num = tok, text, num
	}
	return l.ahead.tok
}

// fail ends the compilation with a message about tok, or none if tok is 0.
func (l *lexer) fail(message string, tok token) {
	switch tok {
	case 0:
		l.failNear(message, "")
	case tokName, tokString, tokNumber:
		l.failNear(message, l.source[l.start:min(l.at, len(l.source))])
	default:
		l.failNear(message, tok.String())
	}
}

func (l *lexer) failNear(message, near string) {
	message = fmt.Sprintf("%s:%d: %s", l.chunk, l.line, message)
	if near != "" {
		message += fmt.Sprintf(" near '%s'", near)
	}
	panic(&Error{Value: String(message), syntax: true})
}

func (l *lexer) failHere(message string) { l.fail(message, l.tok) }

// peekByte is the character at offset i from here; 0 behind the end.
func (l *lexer) peekByte(i int) byte {
	if l.at+i < len(l.source) {
		return l.source[l.at+i]
	}
	return 0
}

// newline skips \n, \r, \r\n or \n\r.
func (l *lexer) newline() {
	first := l.source[l.at]
	l.at++
	if c := l.peekByte(0); (c == '\n' || c == '\r') && c != first {
		l.at++
	}
	l.line++
}

func (l *lexer) scan() token {
	for l.at < len(l.source) {
		l.start = l.at
		switch c := l.source[l.at]; {
		case c == '\n' || c == '\r':
			l.newline()
		case isSpace(c):
			l.at++
		case c == '-':
			if l.peekByte(1) != '-' {
				l.at++
				return '-'
			}
			l.at += 2
			l.comment()
		case isDigit(c) || c == '.' && isDigit(l.peekByte(1)):
			return l.numeral()
		case isAlpha(c) || c == '_':
			return l.name()
		default:
			return l.symbol(c)
		}
	}
	l.start = l.at
	return tokEOF
}

// symbol scans a string, an operator or a single character.
func (l *lexer) symbol(c byte) token {
	switch c {
	case '"', '\'':
		return l.quoted(c)
	case '[':
		if level := l.longBracket(); level >= 0 {
			l.text = l.long(level, true)
			return tokString
		} else if l.peekByte(1) == '=' {
			l.at += -level
			l.fail("invalid long string delimiter", tokString)
		}
	case '=':
		return l.pair('=', tokEq)
	case '<':
		return l.pair('=', tokLe)
	case '>':
		return l.pair('=', tokGe)
	case '~':
		return l.pair('=', tokNe)
	case '.':
		if l.peekByte(1) == '.' {
			if l.peekByte(2) == '.' {
				l.at += 3
				return tokDots
			}
			l.at += 2
			return tokConcat
		}
	}
	l.at++
	return token(c)
}

// pair is double if the next character is second, else the character itself.
func (l *lexer) pair(second byte, double token) token {
	c := l.source[l.at]
	if l.peekByte(1) == second {
		l.at += 2
		return double
	}
	l.at++
	return token(c)
}

func (l *lexer) name() token {
	end := l.at
	for end < len(l.source) && (isAlnum(l.source[end]) || l.source[end] == '_') {
		end++
	}
	l.text = l.source[l.at:end]
	l.at = end
	if word, ok := reserved[l.text]; ok {
		return word
	}
	return tokName
}

func (l *lexer) numeral() token {
	end := l.at
	for end < len(l.source) && (isDigit(l.source[end]) || l.source[end] == '.') {
		end++
	}
	if end < len(l.source) && l.source[end]|0x20 == 'e' {
		end++
		if end < len(l.source) && (l.source[end] == '+' || l.source[end] == '-') {
			end++
		}
	}
	for end < len(l.source) && (isAlnum(l.source[end]) || l.source[end] == '_') {
		end++
	}
	text := l.source[l.at:end]
	l.at = end
	n, ok := ParseNumber(text)
	if !ok {
		l.fail("malformed number", tokNumber)
	}
	l.num = n
	return tokNumber
}

// comment skips a comment whose two dashes have been read.
func (l *lexer) comment() {
	if l.peekByte(0) == '[' {
		if level := l.longBracket(); level >= 0 {
			l.long(level, false)
			return
		}
	}
	if end := strings.IndexAny(l.source[l.at:], "\r\n"); end >= 0 {
		l.at += end
	} else {
		l.at = len(l.source)
	}
}

// longBracket is the level of the long bracket that begins here, or minus the length of what is none.
func (l *lexer) longBracket() int {
	level := 0
	for l.peekByte(1+level) == '=' {
		level++
	}
	if l.peekByte(1+level) == '[' {
		return level
	}
	return -level - 1
}

// long scans a long string or comment of a level, which begins here.
func (l *lexer) long(level int, isString bool) string {
	l.at += level + 2
	if c := l.peekByte(0); l.at < len(l.source) && (c == '\n' || c == '\r') {
		l.newline()
	}
	var text strings.Builder
	from := l.at
	for l.at < len(l.source) {
		switch c := l.source[l.at]; c {
		case '[':
			if level == 0 && l.peekByte(1) == '[' {
				l.at += 2
				l.fail("nesting of [[...]] is deprecated", '[')
			}
			l.at++
		case ']':
			if l.closes(level) {
				text.WriteString(l.source[from:l.at])
				l.at += level + 2
				return text.String()
			}
			l.at++
		case '\n', '\r':
			text.WriteString(l.source[from:l.at])
			text.WriteByte('\n')
			l.newline()
			from = l.at
		default:
			l.at++
		}
	}
	if isString {
		l.fail("unfinished long string", tokEOF)
	}
	l.fail("unfinished long comment", tokEOF)
	return ""
}

// closes reports whether a long bracket of this level closes here.
func (l *lexer) closes(level int) bool {
	for i := range level {
		if l.peekByte(1+i) != '=' {
			return false
		}
	}
	return l.peekByte(1+level) == ']'
}

// quoted scans a string in quotes.
func (l *lexer) quoted(quote byte) token {
	l.at++
	from := l.at
	var text []byte // in use once the string is not a part of the source
	for {
		if l.at >= len(l.source) {
			l.fail("unfinished string", tokEOF)
		}
		switch c := l.source[l.at]; c {
		case quote:
			if text == nil {
				l.text = l.source[from:l.at]
			} else {
				l.text = string(append(text, l.source[from:l.at]...))
			}
			l.at++
			return tokString
		case '\n', '\r':
			l.failNear("unfinished string", string(quote)+string(text)+l.source[from:l.at])
		case '\\':
			text = append(text, l.source[from:l.at]...)
			l.at++
			text = l.escape(text, quote)
			from = l.at
		default:
			l.at++
		}
	}
}

// escape appends what the escape sequence behind a backslash stands for.
func (l *lexer) escape(text []byte, quote byte) []byte {
	if l.at >= len(l.source) {
		return text // the caller says that the string is unfinished
	}
	c := l.source[l.at]
	switch {
	case c == '\n' || c == '\r':
		l.newline()
		return append(text, '\n')
	case isDigit(c):
		n := 0
		for i := 0; i < 3 && isDigit(l.peekByte(0)); i++ {
			n = n*10 + int(l.source[l.at]-'0')
			l.at++
		}
		if n > 255 {
			l.failNear("escape sequence too large", string(quote)+string(text))
		}
		return append(text, byte(n))
	}
	l.at++
	if i := strings.IndexByte("abfnrtv", c); i >= 0 {
		c = "\a\b\f\n\r\t\v"[i]
	}
	return append(text, c)
}
