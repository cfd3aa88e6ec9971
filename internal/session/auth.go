package session

import (
	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// maxAuthFailures is how many wrong passwords one connection may try. Redis has no such limit; here
// guessing costs a new connection every three tries.
const maxAuthFailures = 3

// accepts reports whether a client may be "default" with this password. Without a password every
// candidate is right, as with Redis's "nopass".
func (s *Server) accepts(user, candidate []byte) bool {
	right := s.passwords.accepts(candidate)
	return string(user) == defaultUser && (right || !s.passwords.Needed())
}

// AuthFailures returns how many wrong passwords all connections have tried.
func (s *Server) AuthFailures() int64 { return s.authFailures.Load() }

// CheckAuth returns the text of the error that refuses c to a connection without authentication, or
// "" if c is allowed.
func (s *Server) CheckAuth(st *State, c *command.Command) string {
	if st.Authenticated || st.Monitor || c.Flags&command.NoAuth != 0 {
		return ""
	}
	return errNoAuth
}

// authenticate tries a password. If it is wrong, out contains the refusal, and the Action closes
// the connection after one failure too many.
func (s *Server) authenticate(st *State, user, pass, dst []byte) (out []byte, a Action, ok bool) {
	if s.accepts(user, pass) {
		st.Authenticated = !st.Monitor
		st.AuthFailures = 0
		st.Proved()
		return dst, ActionNone, true
	}
	st.AuthFailures++
	s.authFailures.Add(1)
	if st.AuthFailures >= maxAuthFailures {
		a = ActionCloseAfterReply
	}
	return resp.AppendError(dst, errWrongPass), a, false
}

// auth answers AUTH [user] password.
func (s *Server) auth(st *State, args [][]byte, dst []byte) ([]byte, Action) {
	user, pass := []byte("default"), args[len(args)-1]
	switch {
	case len(args) > 3:
		return resp.AppendError(dst, command.ErrSyntax), ActionNone
	case len(args) == 3:
		user = args[1]
	case !s.passwords.Needed():
		return resp.AppendError(dst, errNoPasswordSet), ActionNone
	}
	dst, a, ok := s.authenticate(st, user, pass, dst)
	if !ok {
		return dst, a
	}
	return resp.AppendOK(dst), ActionNone
}

// helloOptions are the options of a HELLO; nil means not given.
type helloOptions struct {
	version          resp.Version // 0: unchanged
	user, pass, name []byte
}

// hello answers HELLO [2|3] [AUTH user password] [SETNAME name]. It checks everything before it
// changes anything, so a refused HELLO leaves no trace.
func (s *Server) hello(st *State, args [][]byte, dst []byte) ([]byte, Action) {
	o, refusal := parseHello(args)
	if refusal != "" {
		return resp.AppendError(dst, refusal), ActionNone
	}
	if o.user != nil {
		var a Action
		var ok bool
		if dst, a, ok = s.authenticate(st, o.user, o.pass, dst); !ok {
			return dst, a
		}
	}
	if !st.Authenticated && !st.Monitor {
		return resp.AppendError(dst, errNoAuthHello), ActionNone
	}
	if o.name != nil {
		st.Name = string(o.name)
	}
	action := ActionNone
	if o.version != 0 && o.version != st.Version {
		// Before the reply is encoded: the reply is the first one in the new version.
		st.Version = o.version
		st.setApart()
		action = ActionVersionChanged
	}
	return s.appendHello(dst, st), action
}

func parseHello(args [][]byte) (o helloOptions, refusal string) {
	if len(args) < 2 {
		return o, ""
	}
	version, ok := resp.ParseInt(args[1])
	if !ok {
		return o, errProtoNumber
	}
	if version < 2 || version > 3 {
		return o, errNoProto
	}
	o.version = resp.Version(version)
	for rest := args[2:]; len(rest) > 0; {
		switch {
		case command.EqualFold(rest[0], "AUTH") && len(rest) >= 3:
			o.user, o.pass, rest = rest[1], rest[2], rest[3:]
		case command.EqualFold(rest[0], "SETNAME") && len(rest) >= 2:
			if !validName(rest[1]) {
				return o, errClientName
			}
			o.name, rest = rest[1], rest[2:]
		default:
			return o, "ERR Syntax error in HELLO option '" + command.Cut(rest[0]) + "'"
		}
	}
	return o, ""
}

// appendHello encodes the map that every client library reads first. The mode is "standalone" even
// though there is a cluster: to a client, a proxy is one big server, and a library that reads
// "cluster" would look for replicas and slots.
func (s *Server) appendHello(dst []byte, st *State) []byte {
	dst = resp.AppendMap(dst, st.Version, 7)
	dst = resp.AppendBulkStrings(dst, "server", "redis")
	dst = resp.AppendBulkStrings(dst, "version", command.RedisVersion)
	dst = resp.AppendBulkString(dst, "proto")
	dst = resp.AppendInt(dst, int64(st.Version))
	dst = resp.AppendBulkString(dst, "id")
	dst = resp.AppendInt(dst, int64(st.ID))
	dst = resp.AppendBulkStrings(dst, "mode", "standalone")
	dst = resp.AppendBulkStrings(dst, "role", "master")
	dst = resp.AppendBulkString(dst, "modules")
	return resp.AppendArray(dst, 0)
}
