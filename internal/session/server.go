package session

import (
	"crypto/rand"
	"crypto/sha1"
	"encoding/hex"
	"sync/atomic"
	"syscall"
	"time"
)

// RedisVersion is the version of Redis whose behaviour clients may expect.
// Clients choose features by it (CLIENT SETINFO from 7.2, CLIENT NO-TOUCH from
// 7.2), and frameworks refuse to start below their minimum.
const RedisVersion = "7.4.0"

// ServerOptions is what a process tells about itself. The functions are hooks;
// doc.go says what they may do. A nil hook means that its command is refused.
type ServerOptions struct {
	Password   string // "": clients need none
	Version    string // dunlin_version
	Role       string // "node" or "proxy", shown as dunlin_role
	RunID      string // 40 hexadecimal digits; drawn at random if ""
	Start      time.Time
	Bind       string
	Port       int
	MaxClients int    // 0: 10000
	Debug      bool   // DEBUG is allowed
	Policy     string // Redis's or Dunlin's name of the eviction policy; "": allkeys
	Now        func() time.Time

	MaxMemory    func() int64            // the present limit in bytes; nil: 0
	SetMaxMemory func(bytes int64) error // CONFIG SET maxmemory
	SetPolicy    func(name string) error // CONFIG SET maxmemory-policy, with Dunlin's name
	ResetStats   func()                  // CONFIG RESETSTAT
	SlowLogSet   func(l *SlowLog)        // its threshold may have changed; also called at the start
	Cluster      func() View             // CLUSTER; nil: no table, this process alone
	CountKeys    func(slot uint16) int64 // CLUSTER COUNTKEYSINSLOT
}

// Server is what all connections of a process share. It is safe for all loops.
type Server struct {
	o            ServerOptions // Password is cleared
	password     password
	lastID       atomic.Uint64
	authFailures atomic.Int64
	blocked      atomic.Int64 // connections that are Blocked
	config       config
	slow         SlowLog
	pause        pause
	topology     topologyCache
	totalMemory  int64 // bytes of the machine, for INFO
	osName       string
}

// NewServer completes o with defaults. Of the password it keeps a digest only.
func NewServer(o ServerOptions) *Server {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Start.IsZero() {
		o.Start = o.Now()
	}
	if o.RunID == "" {
		o.RunID = randomID()
	}
	if o.MaxClients == 0 {
		o.MaxClients = defaultMaxClients
	}
	s := &Server{password: newPassword(o.Password)}
	o.Password = ""
	s.o = o
	s.config.init(o)
	s.applySlowLog()
	s.totalMemory, s.osName = machine()
	return s
}

// RunID is the process's random identity.
func (s *Server) RunID() string { return s.o.RunID }

// MaxClients is the present limit of connections; CONFIG SET changes it, so
// accept asks each time.
func (s *Server) MaxClients() int { return int(s.config.number("maxclients")) }

// IdleTimeout is how long a silent connection is kept; 0 is for ever.
func (s *Server) IdleTimeout() time.Duration {
	return time.Duration(s.config.number("timeout")) * time.Second
}

func (s *Server) maxMemory() int64 {
	if s.o.MaxMemory == nil {
		return 0
	}
	return s.o.MaxMemory()
}

// NodeID is the id by which CLUSTER commands name a member. Clients of Redis
// Cluster expect 40 hexadecimal digits that survive a restart, so it is a
// digest of the stable member id, without the boot time.
func NodeID(memberID string) string {
	sum := sha1.Sum([]byte(memberID))
	return hex.EncodeToString(sum[:])
}

func randomID() string {
	var b [20]byte
	rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	return hex.EncodeToString(b[:])
}

// machine reads once what cannot change while the process runs.
func machine() (totalMemory int64, osName string) {
	var si syscall.Sysinfo_t
	if syscall.Sysinfo(&si) == nil {
		totalMemory = int64(si.Totalram) * int64(si.Unit)
	}
	var u syscall.Utsname
	if syscall.Uname(&u) != nil {
		return totalMemory, "Linux"
	}
	return totalMemory, utsField(u.Sysname) + " " + utsField(u.Release) + " " + utsField(u.Machine)
}

func utsField(f [65]int8) string {
	b := make([]byte, 0, len(f))
	for _, c := range f {
		if c == 0 {
			break
		}
		b = append(b, byte(c))
	}
	return string(b)
}
