package session

import (
	"math"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// A connection has one database selected, State.Database, which all of its commands are about. SELECT
// within MULTI is queued like other commands, and changes the database of those behind it when EXEC
// executes it.

// ParseDatabase parses the number of a database, of which there are that many. refusal is the text of
// an error, or "".
func ParseDatabase(arg []byte, databases int) (database uint8, refusal string) {
	n, ok := resp.ParseInt(arg)
	switch {
	case !ok:
		return 0, command.ErrNotInteger
	case n < math.MinInt32 || n > math.MaxInt32:
		return 0, command.ErrNotInt32
	case n < 0 || n >= int64(databases):
		return 0, command.ErrDBIndex
	}
	return uint8(n), ""
}

// ParseDatabase parses the number of one of the server's databases.
func (s *Server) ParseDatabase(arg []byte) (database uint8, refusal string) {
	return ParseDatabase(arg, s.o.Config.Databases())
}

// selectDB answers SELECT.
func (s *Server) selectDB(st *State, args [][]byte, dst []byte) ([]byte, Action) {
	database, refusal := s.ParseDatabase(args[1])
	if refusal != "" {
		return resp.AppendError(dst, refusal), ActionNone
	}
	st.Database = database
	return resp.AppendOK(dst), ActionNone
}

// swapDB answers SWAPDB a b. A database can be swapped with itself only: each node would swap its part of two databases
// at another moment.
func (s *Server) swapDB(_ *State, args [][]byte, dst []byte) ([]byte, Action) {
	first, wrongFirst := s.ParseDatabase(args[1])
	second, wrongSecond := s.ParseDatabase(args[2])
	switch {
	case wrongFirst != "" && wrongFirst != command.ErrDBIndex:
		return resp.AppendError(dst, "ERR invalid first DB index"), ActionNone
	case wrongSecond != "" && wrongSecond != command.ErrDBIndex:
		return resp.AppendError(dst, "ERR invalid second DB index"), ActionNone
	case wrongFirst != "" || wrongSecond != "":
		return resp.AppendError(dst, command.ErrDBIndex), ActionNone
	case first != second:
		return resp.AppendError(dst, errSwapDB), ActionNone
	}
	return resp.AppendOK(dst), ActionNone
}
