package session

import (
	"strconv"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/lobby"
	"github.com/dunlin-cache/dunlin/internal/pubsub"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// State is one client connection. It belongs to the connection's loop.
type State struct {
	ID            uint64 // unique in the process, ascending
	Version       resp.Version
	Database      uint8 // that SELECT has selected
	Authenticated bool
	ReadOnly      bool // READONLY was given; shown, but changes nothing: only owners answer
	NoEvict       bool
	NoTouch       bool
	Maintenance   bool // CLIENT MAINT_NOTIFICATIONS ON was given: it moves when it is told to
	Sentinel      bool // SENTINEL is known to it; the caller sets it
	Monitor       bool // shown what others do; Authenticated is false then, to keep it off fast paths
	Multi         bool // MULTI was given: commands are queued in Tx
	Apart         bool // off the fast paths: Multi, Aside, or a subscriber of RESP2
	Blocked       bool // a command waits, and others behind it; see SetBlocked
	Executing     bool // in the middle of EXEC, where nothing waits; the caller sets it

	Delay        time.Duration // set with ActionDelay
	Waiting      *Waiting      // not nil: a command waits, for another reason than a pause
	Tx           *Transaction  // nil without MULTI and WATCH
	AuthFailures int           // wrong passwords in a row

	server   *Server
	guest    *lobby.Guest // nil: proved who it is, or need not
	refusals int          // commands refused in a row for lack of authentication
	muting   muting
	paused   bool // by CLIENT PAUSE
	topics   [pubsub.Kinds]int
	// Tracking is what CLIENT TRACKING has asked for, nil if nothing. Change it by SetTracking.
	Tracking *Tracking
	begun    bool // a command that was Aside now executes on the usual path

	Name, LibName, LibVer string
	Addr, LAddr           string // host:port of the client, and of our end
	FD                    int

	Since    time.Duration // the connection's start, on the server's Clock
	LastUsed time.Duration // the last request, on the same clock; the caller stores it
	// LastCmd is the ID of the last command; of a subcommand, its own ID. Do stores it for its own
	// commands and the caller for the others. It is an ID and not a pointer, because the caller's
	// hot path stores it, and a pointer would need a write barrier.
	LastCmd command.ID

	// InBytes and OutBytes are the sizes of the buffers that CLIENT LIST shows, NetIn and NetOut the bytes
	// that have passed. Client.StateNow stores them.
	InBytes, OutBytes int
	NetIn, NetOut     uint64
	Loop              int    // index of the connection's loop
	Commands          uint64 // requests so far; the caller counts them
	// Client is who has the State, for commands that show it; nil: what it has stored counts.
	Client Client
}

// NewState returns the State of a connection that was accepted now, on the server's Clock.
func (s *Server) NewState(addr, laddr string, now time.Duration) *State {
	st := &State{
		server:        s,
		ID:            s.lastID.Add(1),
		Version:       resp.RESP2,
		Authenticated: !s.passwords.Needed(),
		Addr:          addr,
		LAddr:         laddr,
		Since:         now,
		LastUsed:      now,
	}
	st.SetPaused(s.PauseLeft(now) > 0)
	return st
}

// reset executes RESET: the connection becomes as it was when it was accepted. The library's name
// stays, as in Redis: the same library is still behind the connection.
func (s *Server) reset(st *State) {
	st.Version = resp.RESP2
	st.Authenticated = !s.passwords.Needed()
	st.Name, st.Database = "", 0
	st.ReadOnly, st.NoEvict, st.NoTouch, st.Maintenance, st.Monitor = false, false, false, false, false
	st.muting &= mutedOnce // as in Redis, SKIP may still suppress the reply of RESET itself
	st.topics = [pubsub.Kinds]int{}
	st.Tracking = nil
	st.EndTransaction()
}

// AppendClientLine appends the connection's line of CLIENT LIST, which ends with "\n". Fields
// without a counterpart in Dunlin have the values of an ordinary client of Redis, because programs
// split the line by its field names. now is the server's Clock.
func AppendClientLine(dst []byte, st *State, now time.Duration) []byte {
	dst = appendField(dst, "id=", int64(st.ID))
	dst = append(dst, " addr="...)
	dst = append(dst, st.Addr...)
	dst = append(dst, " laddr="...)
	dst = append(dst, st.LAddr...)
	dst = appendField(dst, " fd=", int64(st.FD))
	dst = append(dst, " name="...)
	dst = append(dst, st.Name...)
	dst = appendField(dst, " age=", seconds(now-st.Since))
	dst = appendField(dst, " idle=", seconds(now-st.LastUsed))
	dst = append(dst, " flags="...)
	dst = st.appendFlags(dst)
	dst = appendField(dst, " db=", int64(st.Database))
	dst = appendField(dst, " sub=", int64(st.topics[pubsub.Channel]))
	dst = appendField(dst, " psub=", int64(st.topics[pubsub.Pattern]))
	dst = appendField(dst, " ssub=", int64(st.topics[pubsub.Shard]))
	queued, watched := -1, 0
	if st.Multi {
		queued = len(st.Tx.Queue)
	}
	if st.Tx != nil {
		watched = st.Tx.keys
	}
	dst = appendField(dst, " multi=", int64(queued))
	dst = appendField(dst, " watch=", int64(watched))
	dst = appendField(dst, " qbuf=", int64(st.InBytes))
	dst = append(dst, " qbuf-free=0 argv-mem=0"...)
	dst = appendField(dst, " multi-mem=", int64(st.QueuedBytes()))
	dst = append(dst, " rbs=0 rbp=0"...)
	dst = appendField(dst, " obl=", int64(st.OutBytes))
	dst = append(dst, " oll=0"...)
	dst = appendField(dst, " omem=", int64(st.OutBytes))
	dst = appendField(dst, " tot-mem=", int64(st.InBytes+st.OutBytes))
	dst = append(dst, " events=r cmd="...)
	dst = st.appendLastCommand(dst)
	dst = append(dst, " user=default"...)
	dst = appendField(dst, " redir=", st.redirect())
	dst = appendField(dst, " resp=", int64(st.Version))
	dst = append(dst, " lib-name="...)
	dst = append(dst, st.LibName...)
	dst = append(dst, " lib-ver="...)
	dst = append(dst, st.LibVer...)
	dst = appendField(dst, " io-thread=", int64(st.Loop))
	dst = appendField(dst, " tot-net-in=", int64(st.NetIn))
	dst = appendField(dst, " tot-net-out=", int64(st.NetOut))
	dst = appendField(dst, " tot-cmds=", int64(st.Commands))
	return append(dst, '\n')
}

func (st *State) appendFlags(dst []byte) []byte {
	before := len(dst)
	if st.Monitor {
		dst = append(dst, 'O')
	}
	if st.ReadOnly {
		dst = append(dst, 'r')
	}
	if st.Subscribes() {
		dst = append(dst, 'P')
	}
	if st.Multi {
		dst = append(dst, 'x')
	}
	if st.Blocked {
		dst = append(dst, 'b')
	}
	if t := st.Tracking; t != nil {
		dst = append(dst, 't')
		if t.Broken {
			dst = append(dst, 'R')
		}
		if t.BCast {
			dst = append(dst, 'B')
		}
	}
	if st.NoEvict {
		dst = append(dst, 'e')
	}
	if st.NoTouch {
		dst = append(dst, 'T')
	}
	if len(dst) == before {
		dst = append(dst, 'N')
	}
	return dst
}

func (st *State) appendLastCommand(dst []byte) []byte {
	c := command.ByID(st.LastCmd)
	if c == nil {
		return append(dst, "NULL"...)
	}
	return append(dst, c.Name...)
}

// seconds rounds down, and hides that loops read their clocks at different times.
func seconds(d time.Duration) int64 { return max(0, int64(d/time.Second)) }

func appendField(dst []byte, name string, n int64) []byte {
	dst = append(dst, name...)
	return strconv.AppendInt(dst, n, 10)
}
