package resp

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// The oracles read what the real parsers read, from the start at each call, with the
// plainest code that can be checked by eye against Redis's networking.c and the RESP3
// specification. They share nothing with the code under test but the limits.

// verdict is everything that a reader reports about a buffer.
type verdict struct {
	outcome Outcome
	args    []string
	length  int
	inline  bool
	err     string
}

func (v verdict) String() string {
	return fmt.Sprintf("%v args=%q length=%d inline=%v err=%q", v.outcome, v.args, v.length, v.inline, v.err)
}

func refused(text string) verdict {
	return verdict{outcome: Malformed, err: "ERR Protocol error: " + text}
}

// oracleRequest judges the request at the start of buf. The limits have no zeros.
func oracleRequest(buf []byte, l Limits) verdict {
	if len(buf) == 0 {
		return verdict{}
	}
	if buf[0] != '*' {
		return oracleInline(string(buf), l)
	}
	line, next, v := oracleLine(string(buf), "\r", l, "too big mbulk count string")
	if next == 0 {
		return v
	}
	count, err := oracleInt(line[1:])
	switch {
	case err != nil, count > DefaultLimits.MaxArgs && count > l.MaxArgs:
		return refused("invalid multibulk length")
	case count > l.MaxArgs && l.Unauthenticated:
		return refused("unauthenticated multibulk length")
	case count > l.MaxArgs:
		return refused("invalid multibulk length")
	}
	rest, total := string(buf[next:]), next
	var args []string
	for range count {
		arg, used, v := oracleBulk(rest, l, total)
		if used == 0 {
			return v
		}
		args = append(args, arg)
		rest, total = rest[used:], total+used
	}
	return verdict{outcome: Done, args: args, length: total}
}

// oracleProgress counts what a Parser must announce for data: requests, large arguments that it may
// pass on, and an error.
func oracleProgress(data []byte, l Limits) (n int) {
	for len(data) > 0 {
		n += oracleAnnounced(string(data), l)
		v := oracleRequest(data, l)
		if v.outcome != NeedMore {
			n++
		}
		if v.outcome != Done {
			break
		}
		data = data[v.length:]
	}
	return n
}

// oracleAnnounced counts the large arguments of the request at the start of s whose header is
// there. Gathered arguments do not count.
func oracleAnnounced(s string, l Limits) (n int) {
	if s[0] != '*' {
		return 0
	}
	line, next, _ := oracleLine(s, "\r", l, "")
	if next == 0 {
		return 0
	}
	count, err := oracleInt(line[1:])
	if err != nil || count > l.MaxArgs {
		return 0
	}
	total := next
	for range count {
		line, next, _ := oracleLine(s[total:], "\r", l, "")
		if next == 0 || line == "" || line[0] != '$' {
			return n
		}
		size, err := oracleInt(line[1:])
		if err != nil || size < 0 || size > l.MaxBulk || total+next+size+2 > l.MaxRequest {
			return n
		}
		if size >= l.LargeBulk {
			if size%3 == 0 { // the receiver gathers this one, and so all that follow
				return n
			}
			n++
		}
		if total += next + size; len(s) < total+2 || s[total:total+2] != "\r\n" {
			return n
		}
		total += 2
	}
	return n
}

// oracleBulk reads one argument; used is 0 if that fails, and the verdict says why.
// before counts the request's earlier bytes.
func oracleBulk(s string, l Limits, before int) (arg string, used int, v verdict) {
	line, next, v := oracleLine(s, "\r", l, "too big bulk count string")
	if next == 0 {
		return "", 0, v
	}
	if !strings.HasPrefix(line, "$") {
		got := strings.NewReplacer("\r", " ", "\n", " ").Replace(s[:1])
		return "", 0, refused("expected '$', got '" + got + "'")
	}
	size, err := oracleInt(line[1:])
	switch {
	case err != nil, size < 0, size > DefaultLimits.MaxBulk && size > l.MaxBulk:
		return "", 0, refused("invalid bulk length")
	case size > l.MaxBulk && l.Unauthenticated:
		return "", 0, refused("unauthenticated bulk length")
	case size > l.MaxBulk:
		return "", 0, refused("invalid bulk length")
	case before+next+size+2 > l.MaxRequest:
		return "", 0, refused("too big request")
	case next+size+2 > len(s):
		return "", 0, verdict{}
	case s[next+size:next+size+2] != "\r\n":
		return "", 0, refused("invalid CRLF in request")
	}
	return s[next : next+size], next + size + 2, verdict{}
}

// oracleLine finds the line at the start of s up to stop. next is 0 if there is none,
// and the verdict says why.
func oracleLine(s, stop string, l Limits, tooLong string) (line string, next int, v verdict) {
	// C's strchr sees nothing behind a NUL, nor here behind the limit.
	visible, _, _ := strings.Cut(s[:min(len(s), l.MaxInline+1)], "\x00")
	line, _, found := strings.Cut(visible, stop)
	switch {
	case !found && len(s) > l.MaxInline:
		return "", 0, refused(tooLong)
	case !found:
		return "", 0, verdict{}
	case stop == "\n":
		return line, len(line) + 1, verdict{}
	case len(s) < len(line)+2:
		return "", 0, verdict{}
	case s[len(line)+1] != '\n':
		return "", 0, refused("invalid CRLF in request")
	}
	return line, len(line) + 2, verdict{}
}

// oracleInt reads what Redis's string2ll does: a number that, printed again, is the
// same text.
func oracleInt(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err == nil && strconv.Itoa(n) != s {
		err = strconv.ErrSyntax
	}
	return n, err
}

func oracleInline(s string, l Limits) verdict {
	line, next, v := oracleLine(s, "\n", l, "too big inline request")
	if next == 0 {
		return v
	}
	words, ok := oracleWords(strings.TrimSuffix(line, "\r"))
	if !ok {
		return refused("unbalanced quotes in request")
	}
	return verdict{outcome: Done, args: words, length: next, inline: true}
}

// oracleWords is sdssplitargs as a machine that looks at one byte and its mode.
func oracleWords(s string) (words []string, ok bool) {
	const spaces = " \t\n\v\f\r"
	at := func(i int) byte { // a C string ends with NUL
		if i < len(s) {
			return s[i]
		}
		return 0
	}
	isHex := func(c byte) bool { return c != 0 && strings.IndexByte("0123456789abcdefABCDEF", c) >= 0 }
	i := 0
	for {
		for i < len(s) && strings.IndexByte(spaces, s[i]) >= 0 {
			i++
		}
		if i >= len(s) {
			return words, true
		}
		var word bytes.Buffer
		mode := byte(0) // or the open quote
		for done := false; !done; i++ {
			c := at(i)
			closed := c == mode && (at(i+1) == 0 || strings.IndexByte(spaces, at(i+1)) >= 0)
			switch {
			case mode != 0 && c == 0, mode != 0 && c == mode && !closed:
				return nil, false
			case mode != 0 && c == mode:
				done = true
			case mode == '"' && c == '\\' && at(i+1) == 'x' && isHex(at(i+2)) && isHex(at(i+3)):
				b, _ := strconv.ParseUint(s[i+2:i+4], 16, 8)
				word.WriteByte(byte(b))
				i += 3
			case mode == '"' && c == '\\' && at(i+1) != 0:
				i++
				if k := strings.IndexByte("nrtba", at(i)); k >= 0 {
					word.WriteByte("\n\r\t\b\a"[k])
				} else {
					word.WriteByte(at(i))
				}
			case mode == '\'' && c == '\\' && at(i+1) == '\'':
				i++
				word.WriteByte('\'')
			case mode == 0 && strings.IndexByte(" \n\r\t\x00", c) >= 0:
				done = true
			case mode == 0 && (c == '"' || c == '\''):
				mode = c
			default:
				word.WriteByte(c)
			}
		}
		words = append(words, word.String())
	}
}

// oracleReply judges the reply at the start of buf by recursive descent.
func oracleReply(buf []byte) (length int, outcome Outcome) {
	rest, outcome := oracleValue(string(buf), 0)
	return len(buf) - len(rest), outcome
}

// oracleValue cuts one value off s.
func oracleValue(s string, depth int) (rest string, outcome Outcome) {
	if s == "" {
		return "", NeedMore
	}
	kind := s[0]
	if strings.IndexByte("+-:_#,(", kind) >= 0 {
		line, rest, found := strings.Cut(s[:min(len(s), maxLine)], "\n")
		switch {
		case !found && len(s) < maxLine:
			return "", NeedMore
		case !found, strings.IndexByte(line, '\r') != len(line)-1:
			return "", Malformed
		}
		return s[len(s[:min(len(s), maxLine)])-len(rest):], Done
	}
	if strings.IndexByte("$=!*~>%|", kind) < 0 {
		return "", Malformed
	}
	line, _, found := strings.Cut(s[:min(len(s), 23)], "\n")
	if !found && len(s) < 23 {
		return "", NeedMore
	}
	n, err := oracleInt(strings.TrimSuffix(line[1:], "\r"))
	if !found || !strings.HasSuffix(line, "\r") || err != nil {
		return "", Malformed
	}
	rest = s[len(line)+1:]
	if strings.IndexByte("$=!", kind) >= 0 {
		return oracleBlob(kind, n, rest)
	}
	return oracleElements(kind, n, rest, depth+1)
}

// oracleBlob cuts the payload off a reply with a length.
func oracleBlob(kind byte, n int, rest string) (string, Outcome) {
	switch {
	case kind == '$' && n == -1:
		return rest, Done
	case n < 0, n > 512<<20, kind == '=' && n < 4:
		return "", Malformed
	case len(rest) < n+2:
		return "", NeedMore
	case rest[n:n+2] != "\r\n":
		return "", Malformed
	}
	return rest[n+2:], Done
}

// oracleElements cuts n elements off, and behind attributes the value that they are
// about.
func oracleElements(kind byte, n int, rest string, depth int) (string, Outcome) {
	if kind == '*' && n == -1 {
		return rest, Done
	}
	if n < 0 || n > 1<<30 || depth > MaxDepth {
		return "", Malformed
	}
	if kind == '%' || kind == '|' {
		if n *= 2; n > 1<<30 {
			return "", Malformed
		}
	}
	outcome := Done
	for ; n > 0 && outcome == Done; n-- {
		rest, outcome = oracleValue(rest, depth)
	}
	if kind == '|' && outcome == Done {
		return oracleValue(rest, depth-1)
	}
	return rest, outcome
}
