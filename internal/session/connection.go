package session

import (
	"strconv"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// ping answers PING [message].
func ping(_ *Server, st *State, args [][]byte, dst []byte) ([]byte, Action) {
	switch {
	case len(args) <= 2 && st.listensOnly():
		return appendPong(dst, args[1:]), ActionNone
	case len(args) == 1:
		return append(dst, "+PONG\r\n"...), ActionNone
	case len(args) == 2:
		return resp.AppendBulk(dst, args[1]), ActionNone
	}
	// A single number in the command table cannot express this arity.
	var scratch [64]byte
	text := command.AppendWrongArity(scratch[:0], command.ByID(command.Ping))
	return resp.AppendErrorBytes(dst, text), ActionNone
}

func echo(_ *Server, _ *State, args [][]byte, dst []byte) ([]byte, Action) {
	return resp.AppendBulk(dst, args[1]), ActionNone
}

func quit(_ *Server, _ *State, _ [][]byte, dst []byte) ([]byte, Action) {
	return resp.AppendOK(dst), ActionCloseAfterReply
}

func reset(s *Server, st *State, _ [][]byte, dst []byte) ([]byte, Action) {
	s.reset(st)
	return append(dst, "+RESET\r\n"...), ActionReset
}

// timeNow answers TIME: seconds and microseconds, as two strings.
func timeNow(s *Server, _ *State, _ [][]byte, dst []byte) ([]byte, Action) {
	micros := s.o.Now().UnixMicro()
	dst = resp.AppendArray(dst, 2)
	dst = appendBulkInt(dst, micros/1e6)
	return appendBulkInt(dst, micros%1e6), ActionNone
}

// readOnly, readWrite and asking answer commands that clients of Redis Cluster send before they
// read from a replica or follow a move. There is nothing to permit: a node that does not own a key
// redirects the client.
func readOnly(_ *Server, st *State, _ [][]byte, dst []byte) ([]byte, Action) {
	st.ReadOnly = true
	return resp.AppendOK(dst), ActionNone
}

func readWrite(_ *Server, st *State, _ [][]byte, dst []byte) ([]byte, Action) {
	st.ReadOnly = false
	return resp.AppendOK(dst), ActionNone
}

func asking(_ *Server, _ *State, _ [][]byte, dst []byte) ([]byte, Action) {
	return resp.AppendOK(dst), ActionNone
}

func appendBulkInt(dst []byte, n int64) []byte {
	var digits [20]byte
	return resp.AppendBulk(dst, strconv.AppendInt(digits[:0], n, 10))
}
