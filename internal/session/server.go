package session

import (
	"sync/atomic"
	"time"

	"github.com/dunlin-cache/dunlin/internal/cluster"
	"github.com/dunlin-cache/dunlin/internal/config"
	"github.com/dunlin-cache/dunlin/internal/lobby"
	"github.com/dunlin-cache/dunlin/internal/tracking"
)

// Options are what the connections of a process share.
type Options struct {
	Passwords *Passwords // none: clients need none
	Debug     bool       // DEBUG is allowed
	Start     time.Time
	Now       func() time.Time // the wall clock, which TIME shows and nothing else may read; nil: time.Now
	// Clock is the monotonic clock of all durations: pauses, ages, idle times. Loops read it once an
	// iteration. nil: the time since NewServer.
	Clock func() time.Duration

	// Maintenance says that connections are told before the process stops, so CLIENT MAINT_NOTIFICATIONS is known.
	Maintenance bool

	Sentinel *Sentinel // for connections with State.Sentinel; nil: there are none

	Config  *config.Config  // nil: the initial parameters, none of which has a hook
	Cluster *cluster.Server // nil: no table, this process alone
}

// Server is what all connections of a process share. All loops may call its methods.
type Server struct {
	o            Options
	passwords    *Passwords
	lobby        *lobby.Lobby
	slot         slot
	lastID       atomic.Uint64
	authFailures atomic.Int64
	blocked      atomic.Int64 // number of connections that are Blocked
	pause        pause
	directory    tracking.Directory
	visits       Visits
}

// NewServer completes o with defaults.
func NewServer(o Options) *Server {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Start.IsZero() {
		o.Start = o.Now()
	}
	if o.Clock == nil {
		begun := time.Now()
		o.Clock = func() time.Duration { return time.Since(begun) }
	}
	if o.Config == nil {
		o.Config = config.New(config.Options{})
	}
	if o.Cluster == nil {
		o.Cluster = cluster.New(nil)
	}
	return &Server{
		o: o, passwords: o.Passwords, lobby: newLobby(o.Config.MaxClients()), slot: slot{visitors: lobby.New(1, 1)},
	}
}

// Visits returns the commands that visit all connections.
func (s *Server) Visits() *Visits { return &s.visits }

// Blocked returns how many connections are Blocked.
func (s *Server) Blocked() int64 { return s.blocked.Load() }
