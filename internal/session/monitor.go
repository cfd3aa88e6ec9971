package session

import (
	"strconv"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// monitor answers MONITOR: from now on the connection is shown what others do, and may not use
// commands on keys, as in Redis.
func monitor(_ *Server, st *State, _ [][]byte, dst []byte) ([]byte, Action) {
	if st.Monitor {
		return resp.AppendOK(dst), ActionNone
	}
	st.Monitor = true
	st.Authenticated = false // off the fast path, see CheckAuth
	return resp.AppendOK(dst), ActionMonitor
}

// Monitored reports whether MONITOR shows a request of st. Administrators' commands are left out,
// as in Redis.
func Monitored(st *State, args [][]byte) bool {
	var scratch [256]byte
	row, _ := command.Resolve(scratch[:0], args)
	return row != nil && row.Flags&(command.Admin|command.SkipMonitor) == 0 && refuseMonitor(st, row) == "" &&
		(st.Authenticated || st.Monitor || row.Flags&command.NoAuth != 0)
}

// Bounds of a line of MONITOR, because lines wait in memory for their readers.
const (
	maxMonitoredArg  = 16 << 10
	maxMonitoredLine = 256 << 10
)

// AppendMonitorLine appends the line for a request made at the given time in Unix microseconds. It
// hides passwords. more is how many arguments the request has beyond args.
func AppendMonitorLine(dst []byte, st *State, database uint8, args [][]byte, more int, micros int64) []byte {
	start := len(dst)
	dst = append(dst, '+')
	dst = strconv.AppendInt(dst, micros/1e6, 10)
	dst = append(dst, '.')
	for unit := int64(1e5); unit > 0; unit /= 10 {
		dst = append(dst, '0'+byte(micros/unit%10))
	}
	dst = append(dst, " ["...)
	dst = strconv.AppendUint(dst, uint64(database), 10)
	dst = append(dst, ' ')
	dst = append(dst, st.Addr...)
	dst = append(dst, ']')
	for i, arg := range args {
		dst = append(dst, ' ')
		switch {
		case len(dst)-start > maxMonitoredLine:
			return appendMore(dst, len(args)-i+more)
		case isPassword(args, i):
			dst = append(dst, `"(redacted)"`...)
		default:
			dst = appendQuoted(dst, arg[:min(len(arg), maxMonitoredArg)])
			if len(arg) > maxMonitoredArg {
				dst = append(dst, "... ("...)
				dst = strconv.AppendInt(dst, int64(len(arg)-maxMonitoredArg), 10)
				dst = append(dst, " more bytes)"...)
			}
		}
	}
	if more > 0 {
		return appendMore(append(dst, ' '), more)
	}
	return append(dst, '\r', '\n')
}

// appendMore ends a line in the place of its last arguments.
func appendMore(dst []byte, arguments int) []byte {
	dst = append(dst, "... ("...)
	dst = strconv.AppendInt(dst, int64(arguments), 10)
	return append(dst, " more arguments)\r\n"...)
}

// isPassword reports whether an argument is a user's name or password.
func isPassword(args [][]byte, i int) bool {
	switch {
	case i == 0:
		return false
	case command.EqualFold(args[0], "auth"):
		return true
	case command.EqualFold(args[0], "hello"):
		return i >= 3 && command.EqualFold(args[i-1], "auth") || i >= 4 && command.EqualFold(args[i-2], "auth")
	}
	return false
}

// appendQuoted appends arg in the quoted form that redis-cli reads.
func appendQuoted(dst, arg []byte) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for _, c := range arg {
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c == '\r':
			dst = append(dst, '\\', 'r')
		case c == '\t':
			dst = append(dst, '\\', 't')
		case c == '\a':
			dst = append(dst, '\\', 'a')
		case c == '\b':
			dst = append(dst, '\\', 'b')
		case c < ' ' || c > '~':
			dst = append(dst, '\\', 'x', hex[c>>4], hex[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}

// refuseMonitor returns the error for a command on keys from a connection that monitors, or "".
func refuseMonitor(st *State, c *command.Command) string {
	if st.Monitor && c.Flags&(command.ReadOnly|command.Write) != 0 {
		return errMonitorKeys
	}
	return ""
}
