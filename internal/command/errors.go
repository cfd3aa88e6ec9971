package command

import (
	"bytes"
	"strconv"
	"strings"
)

// Redis's own error texts that commands of every kind use.
const (
	ErrSyntax     = "ERR syntax error"
	ErrNotInteger = "ERR value is not an integer or out of range"
	ErrNotInt32   = "ERR value is out of range, value must between -2147483648 and 2147483647"
	ErrDBIndex    = "ERR DB index is out of range"
)

// maxQuoted is how many bytes of a client's argument an error repeats, as in Redis: an error must
// not be as long as the argument that caused it.
const maxQuoted = 128

// Cut shortens a client's argument for an error text.
func Cut(arg []byte) string { return string(arg[:min(len(arg), maxQuoted)]) }

// AppendUnknown appends Redis's error text for an unknown command. args is the whole request and is
// copied from.
func AppendUnknown(dst []byte, args [][]byte) []byte {
	dst = append(dst, "ERR unknown command '"...)
	dst = appendQuoted(dst, args[0], maxQuoted)
	dst = append(dst, "', with args beginning with: "...)
	// The quotes and the space count too, so the last argument is cut shorter,
	// possibly to nothing.
	start := len(dst)
	for _, arg := range args[1:] {
		left := maxQuoted - (len(dst) - start)
		if left <= 0 {
			break
		}
		dst = append(dst, '\'')
		dst = appendQuoted(dst, arg, left)
		dst = append(dst, "' "...)
	}
	return dst
}

// AppendWrongArity appends the error text for a call of c with too few or too
// many arguments.
func AppendWrongArity(dst []byte, c *Command) []byte {
	dst = append(dst, "ERR wrong number of arguments for '"...)
	dst = append(dst, c.Name...)
	return append(dst, "' command"...)
}

// appendTooMany appends the error text for a call of c with more words than a server answers.
func appendTooMany(dst []byte, c *Command) []byte {
	dst = append(dst, "ERR too many arguments for '"...)
	dst = append(dst, c.Name...)
	dst = append(dst, "' command: a command without keys takes at most "...)
	return strconv.AppendInt(dst, maxWords, 10)
}

// appendTooLong appends the error text for a call of c with longer arguments than a server answers.
func appendTooLong(dst []byte, c *Command) []byte {
	dst = append(dst, "ERR the arguments for '"...)
	dst = append(dst, c.Name...)
	dst = append(dst, "' command are too long: a command without keys takes at most "...)
	return append(strconv.AppendInt(dst, maxBytes, 10), " bytes"...)
}

// AppendUnknownSub appends the error text for a subcommand that the container
// does not have. sub is copied from.
func AppendUnknownSub(dst []byte, container *Command, sub []byte) []byte {
	dst = append(dst, "ERR unknown subcommand '"...)
	dst = appendQuoted(dst, sub, maxQuoted)
	dst = append(dst, "'. Try "...)
	for i := range len(container.Name) {
		ch := container.Name[i]
		if 'a' <= ch && ch <= 'z' {
			ch -= 'a' - 'A'
		}
		dst = append(dst, ch)
	}
	return append(dst, " HELP."...)
}

// WrongSubArgs is the error text for a number of arguments that a subcommand's row cannot express.
// args is the whole request.
func WrongSubArgs(args [][]byte) string {
	return "ERR unknown subcommand or wrong number of arguments for '" + Cut(args[1]) + "'. Try " +
		strings.ToUpper(string(args[0])) + " HELP."
}

// appendQuoted appends at most limit bytes of b as C's printf would: up to the first zero byte. CR
// and LF become spaces, because they would end the reply.
func appendQuoted(dst, b []byte, limit int) []byte {
	if len(b) > limit {
		b = b[:limit]
	}
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	for _, ch := range b {
		if ch == '\r' || ch == '\n' {
			ch = ' '
		}
		dst = append(dst, ch)
	}
	return dst
}
