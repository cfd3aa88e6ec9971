package session

import (
	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// State is one client connection. It is owned by the connection's loop.
type State struct {
	ID            uint64
	Version       resp.Version
	Authenticated bool
	ReadOnly      bool // READONLY was given; kept for CLIENT LIST only
	NoEvict       bool
	NoTouch       bool
	AuthFailures  int // wrong passwords so far

	Name, LibName, LibVer string
	Addr, LAddr           string
	FD                    int // shown by CLIENT LIST only

	Since     int64      // unix milliseconds of the connection's start
	LastMilli int64      // unix milliseconds of the last request; the caller stores it
	LastCmd   command.ID // the caller stores it for commands that Do does not answer
	LastSub   string     // subcommand of LastCmd when that is a container

	// What CLIENT LIST shows of the buffers; the caller stores them before it
	// calls AppendClientLine, or leaves them 0.
	InBytes, OutBytes int
}

// NewState is called when a connection is accepted. nowMilli is unix time.
func (s *Server) NewState(addr, laddr string, nowMilli int64) *State { return nil }

// AppendClientLine appends the connection's line of CLIENT LIST, ended by "\n".
func AppendClientLine(dst []byte, st *State, nowMilli int64) []byte { return dst }

// AppendClientList encodes the gathered lines as the reply to CLIENT LIST.
func AppendClientList(dst []byte, v resp.Version, lines []byte) []byte { return dst }

// ClientFilter is which connections a CLIENT LIST asks for.
type ClientFilter struct {
	ids  []uint64
	none bool
}

// ClientFilterOf reads the options of a CLIENT LIST for which Do returned
// ActionClientList. The filter holds no view of args.
func ClientFilterOf(args [][]byte) ClientFilter { return ClientFilter{} }

// Match tells whether the filter asks for this connection.
func (f ClientFilter) Match(st *State) bool { return true }
