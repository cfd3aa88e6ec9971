package session

import (
	"slices"
	"strings"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// maxClientName bounds a name that a connection makes the server keep, in bytes. Redis has no
// limit, but 30,000 connections with names of 512 MB would exhaust the memory.
const maxClientName = 1 << 10

func clientID(_ *Server, st *State, _ [][]byte, dst []byte) ([]byte, Action) {
	return resp.AppendInt(dst, int64(st.ID)), ActionNone
}

func clientInfo(s *Server, st *State, _ [][]byte, dst []byte) ([]byte, Action) {
	if st.Client != nil {
		st.Client.StateNow()
	}
	line := AppendClientLine(nil, st, s.o.Clock())
	return resp.AppendVerbatim(dst, st.Version, "txt", string(line)), ActionNone
}

// validName reports whether name fits into a field of CLIENT LIST.
func validName(name []byte) bool {
	return len(name) <= maxClientName && !slices.ContainsFunc(name, func(c byte) bool { return c < '!' || c > '~' })
}

func clientSetName(_ *Server, st *State, args [][]byte, dst []byte) ([]byte, Action) {
	if !validName(args[2]) {
		return resp.AppendError(dst, errClientName), ActionNone
	}
	st.Name = string(args[2])
	return resp.AppendOK(dst), ActionNone
}

func clientGetName(_ *Server, st *State, _ [][]byte, dst []byte) ([]byte, Action) {
	if st.Name == "" {
		return resp.AppendNull(dst, st.Version), ActionNone
	}
	return resp.AppendBulkString(dst, st.Name), ActionNone
}

// clientSetInfo answers CLIENT SETINFO LIB-NAME|LIB-VER value.
func clientSetInfo(_ *Server, st *State, args [][]byte, dst []byte) ([]byte, Action) {
	var field *string
	switch option := args[2]; {
	case command.EqualFold(option, "lib-name"):
		field = &st.LibName
	case command.EqualFold(option, "lib-ver"):
		field = &st.LibVer
	default:
		return resp.AppendError(dst, "ERR Unrecognized option '"+command.Cut(option)+"'"), ActionNone
	}
	if !validName(args[3]) {
		return resp.AppendError(dst, "ERR "+strings.ToLower(string(args[2]))+" cannot contain spaces, newlines or special characters."), ActionNone
	}
	*field = string(args[3])
	return resp.AppendOK(dst), ActionNone
}

// clientCapa answers CLIENT CAPA capability...: as in Valkey, any is accepted. The one that exists,
// redirect, allows what no server does here: an owner answers, or names who is one, to everybody.
func clientCapa(_ *Server, _ *State, _ [][]byte, dst []byte) ([]byte, Action) {
	return resp.AppendOK(dst), ActionNone
}

// clientNoEvict stores a flag that CLIENT LIST shows. It has no other effect, because connections
// are never evicted.
func clientNoEvict(_ *Server, st *State, args [][]byte, dst []byte) ([]byte, Action) {
	return setSwitch(&st.NoEvict, args[2], dst), ActionNone
}

// clientNoTouch stores a flag for the caller, whose reads may honour it.
func clientNoTouch(_ *Server, st *State, args [][]byte, dst []byte) ([]byte, Action) {
	return setSwitch(&st.NoTouch, args[2], dst), ActionNone
}

func setSwitch(flag *bool, value, dst []byte) []byte {
	switch {
	case command.EqualFold(value, "on"):
		*flag = true
	case command.EqualFold(value, "off"):
		*flag = false
	default:
		return resp.AppendError(dst, command.ErrSyntax)
	}
	return resp.AppendOK(dst)
}

// errNoPushes refuses what a connection of RESP2 cannot be told.
const errNoPushes = "ERR CLIENT MAINT_NOTIFICATIONS needs RESP3: send HELLO 3 first"

// clientMaintNotifications executes CLIENT MAINT_NOTIFICATIONS ON [MOVING-ENDPOINT-TYPE type], and OFF. The type says
// which address of another server the client could use. None is named, whatever the type. Libraries then connect again
// to the address that they have; for the one that does not, see endsWithoutAddress.
//
// A server that tells nobody answers as a Redis does that does not know the command: libraries go on without.
func clientMaintNotifications(s *Server, st *State, args [][]byte, dst []byte) ([]byte, Action) {
	if !s.o.Maintenance {
		var scratch [256]byte
		text := command.AppendUnknownSub(scratch[:0], command.ByID(command.Client), args[1])
		return resp.AppendErrorBytes(dst, text), ActionNone
	}
	options := args[3:]
	takesType := len(options) == 2 && command.EqualFold(options[0], "moving-endpoint-type")
	switch on := command.EqualFold(args[2], "on"); {
	case on && len(options) > 0 && !takesType, !on && (len(options) > 0 || !command.EqualFold(args[2], "off")):
		return resp.AppendError(dst, command.ErrSyntax), ActionNone
	case on && st.Version != resp.RESP3:
		return resp.AppendError(dst, errNoPushes), ActionNone
	default:
		st.Maintenance = on && !(takesType && endsWithoutAddress(st.LibName, options[1]))
	}
	return resp.AppendOK(dst), ActionNone
}

// LosesTopics reports whether the client would lose what it subscribes to if it moved when it is told to: node-redis 6.3
// puts a new connection in the place of the old one, and does not subscribe on it. When its connection is closed it does.
func (st *State) LosesTopics() bool { return st.Subscribes() && isNodeRedis(st.LibName) }

// isNodeRedis also knows a library on top of it, which appends its name.
func isNodeRedis(library string) bool { return strings.HasPrefix(library, "node-redis") }

// endsWithoutAddress reports whether the client's process ends when MOVING names no address, because its library fails
// an assertion. node-redis 6.3 does, unless its client has chosen the type "none", which is not the default. The
// command succeeds all the same: a client that insists on being told would not connect after an error.
func endsWithoutAddress(library string, endpoint []byte) bool {
	return isNodeRedis(library) && !command.EqualFold(endpoint, "none")
}
