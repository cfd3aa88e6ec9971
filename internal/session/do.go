package session

import (
	"github.com/dunlin-cache/dunlin/internal/command"
)

// Action is what the caller must do besides sending the reply.
type Action uint8

const (
	ActionNone            Action = iota
	ActionCloseAfterReply        // send what is queued, then close (QUIT, too many wrong passwords)
	ActionClose                  // close at once, without a reply (an HTTP request)
	ActionReset                  // RESET: State is already reset; drop everything else that the session holds
	ActionVersionChanged         // HELLO: State.Version is another one now
	ActionClientList             // CLIENT LIST: nothing appended; gather the lines of all loops, see ClientFilterOf
)

// Refuse appends the error for a request that must not be executed: unknown or
// unbuilt command, wrong number of arguments, no authentication. c is what
// command.Lookup found for args[0], or nil. args must not be empty.
func (s *Server) Refuse(st *State, c *command.Command, args [][]byte, dst []byte) (out []byte, a Action, refused bool) {
	return dst, ActionNone, false
}

// Do answers c if it is one of this package's commands; ok is false otherwise,
// and then nothing was appended. Refuse must have let the request pass.
// It also records c as the connection's last command.
func (s *Server) Do(st *State, c *command.Command, args [][]byte, dst []byte) (out []byte, a Action, ok bool) {
	return dst, ActionNone, false
}

// CheckAuth returns the error text with which c is refused to a connection
// that has not authenticated, or "".
func (s *Server) CheckAuth(st *State, c *command.Command) string { return "" }

// IsHTTP tells whether a request is the start of an HTTP request: a browser
// tricked into sending commands. The connection must be closed without a reply.
func IsHTTP(args [][]byte) bool { return false }
