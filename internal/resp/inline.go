package resp

// parseInline reads a line of words, as a person types it into telnet.
func (p *Parser) parseInline(buf []byte) Outcome {
	end, outcome := p.lineEnd(buf, '\n', errInlineLine)
	if outcome != Done {
		return outcome
	}
	line := buf[:end]
	if end > 0 && line[end-1] == '\r' {
		line = line[:end-1]
	}
	if !p.splitWords(line) {
		return p.fail(errQuotes)
	}
	p.count = len(p.args)
	return p.finish(end+1, true)
}

// SplitWords splits line into words, as those of a request that is typed: they may be quoted. It returns false if
// quotes are unbalanced. The words may be views of line.
func SplitWords(line []byte) (words [][]byte, ok bool) {
	var p Parser
	ok = p.splitWords(line)
	return p.args, ok
}

// splitWords splits line into words, the arguments. It returns false if quotes are unbalanced.
// Plain words are views of the line; quoted ones are written to p.words. If p.words moves as it
// grows, earlier arguments keep the old memory, which nobody writes any more.
func (p *Parser) splitWords(line []byte) bool {
	for {
		for len(line) > 0 && isSpace(line[0]) {
			line = line[1:]
		}
		if len(line) == 0 {
			return true
		}
		n := plainWord(line)
		if n == len(line) || endsWord(line[n]) {
			p.args = append(p.args, line[:n:n])
			line = line[n:]
			continue
		}
		start := len(p.words)
		var quoted int
		var ok bool
		p.words = append(p.words, line[:n]...)
		p.words, quoted, ok = appendUnquoted(p.words, line[n:])
		if !ok {
			return false
		}
		p.args = append(p.args, p.words[start:len(p.words):len(p.words)])
		line = line[n+quoted:]
	}
}

// plainWord returns how many bytes of line precede the first quote or the end of the word.
func plainWord(line []byte) int {
	for i, c := range line {
		if c == '"' || c == '\'' || endsWord(c) {
			return i
		}
	}
	return len(line)
}

// appendUnquoted appends to dst what the quotes at line[0] enclose. n counts the bytes
// up to and with the closing quote, which must be followed by a space or nothing.
// Between double quotes a backslash begins an escape; between single quotes only \' is
// one.
func appendUnquoted(dst, line []byte) (_ []byte, n int, ok bool) {
	quote := line[0]
	for i := 1; i < len(line); i++ {
		c := line[i]
		switch {
		case c == quote:
			i++
			return dst, i, i == len(line) || isSpace(line[i])
		case c == '\\' && quote == '\'' && i+1 < len(line) && line[i+1] == '\'':
			dst = append(dst, '\'')
			i++
		case c == '\\' && quote == '"' && i+1 < len(line):
			b, size := escaped(line[i+1:])
			dst = append(dst, b)
			i += size
		default:
			dst = append(dst, c)
		}
	}
	return dst, 0, false
}

// escaped returns the byte for which the text after a backslash stands, and how many bytes of the
// text belong to the escape. text is not empty.
func escaped(text []byte) (b byte, size int) {
	switch c := text[0]; c {
	case 'n':
		return '\n', 1
	case 'r':
		return '\r', 1
	case 't':
		return '\t', 1
	case 'b':
		return '\b', 1
	case 'a':
		return '\a', 1
	case 'x':
		if len(text) >= 3 {
			high, low := hexValue(text[1]), hexValue(text[2])
			if high < 16 && low < 16 {
				return high<<4 | low, 3
			}
		}
		return c, 1
	default:
		return c, 1
	}
}

// hexValue returns the value of a hexadecimal digit, 16 for anything else.
func hexValue(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10
	default:
		return 16
	}
}

// endsWord reports whether c ends a word outside quotes. Redis's set for this is smaller than its
// set of spaces between words.
func endsWord(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// isSpace reports whether c may separate words: C's isspace.
func isSpace(c byte) bool { return c == ' ' || (c >= '\t' && c <= '\r') }
