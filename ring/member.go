package ring

import (
	"cmp"
	"fmt"
	"strconv"
)

// Role says what a member is for.
type Role uint8

const (
	// RoleNode stores keys.
	RoleNode Role = iota
	// RoleProxy forwards commands; it owns nothing and issues nothing.
	RoleProxy
)

func (r Role) String() string {
	switch r {
	case RoleNode:
		return "node"
	case RoleProxy:
		return "proxy"
	}
	return "role(" + strconv.Itoa(int(r)) + ")"
}

// State says how far a member is in its life. Only a Serving node owns
// partitions.
type State uint8

const (
	Joining State = iota
	Serving
	Leaving
)

func (s State) String() string {
	switch s {
	case Joining:
		return "joining"
	case Serving:
		return "serving"
	case Leaving:
		return "leaving"
	}
	return "state(" + strconv.Itoa(int(s)) + ")"
}

// Limits of a member's texts, so that a member with the longest of them still
// fits into the 512 bytes that gossip carries for it.
const (
	MaxID   = 100
	MaxAddr = 120

	maxIssuer = MaxID + 1 + 13 // '@' and an int64 in base 36
)

// Member is one process of the cluster as gossip shows it. Epoch and Issuer are
// the version of the table that it holds, zero and empty if it has none; inside a
// Table they, and Level, are always zero.
type Member struct {
	// ID is stable over restarts: the ring is built of ids, so that a node that
	// comes back gets its old partitions.
	ID string
	// Boot is the member's start in Unix nanoseconds. It tells two lives of one id
	// apart, and the oldest serving node is the coordinator.
	Boot  int64
	Role  Role
	State State
	// Addr is where clients and other members reach it, host:port; Admin its admin
	// HTTP address, possibly empty.
	Addr  string
	Admin string
	// Fingerprint is the Fingerprint of its build: members that place keys
	// differently must not mix.
	Fingerprint uint32
	Epoch       uint64
	Issuer      string
	// Level is the protocol level that it speaks. AppendMember leaves it out: gossip
	// carries it beside a member, where those who do not know levels look past it.
	Level uint8
}

// Name names one life of a member: its id and its boot.
func (m Member) Name() string {
	return m.ID + "@" + strconv.FormatInt(m.Boot, 36)
}

// Version is the version of the table that m holds.
func (m Member) Version() Version { return Version{m.Epoch, m.Issuer} }

// Validate reports what keeps m out of a cluster: an id or an address that cannot
// be spread.
func (m Member) Validate() error {
	if m.ID == "" || len(m.ID) > MaxID {
		return fmt.Errorf("member id %q has %d bytes, want 1 to %d", m.ID, len(m.ID), MaxID)
	}
	for _, c := range []byte(m.ID) {
		if !idByte(c) {
			return fmt.Errorf("member id %q has the byte %q, want letters, digits or any of \"-_.:\"", m.ID, c)
		}
	}
	if m.Boot <= 0 {
		return fmt.Errorf("member %q has boot %d, want a time", m.ID, m.Boot)
	}
	if m.Role > RoleProxy || m.State > Leaving {
		return fmt.Errorf("member %q has an unknown %v or %v", m.ID, m.Role, m.State)
	}
	if len(m.Addr) > MaxAddr || len(m.Admin) > MaxAddr {
		return fmt.Errorf("member %q has an address longer than %d bytes", m.ID, MaxAddr)
	}
	return nil
}

func idByte(c byte) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	}
	return c == '-' || c == '_' || c == '.' || c == ':'
}

// Coordinator returns the one member that issues tables: the serving node with
// the smallest boot, then the smallest id. The oldest, because a node that comes
// and goes must not take the office with it each time.
func Coordinator(alive []Member) (Member, bool) {
	var best Member
	found := false
	for _, m := range newestBoots(alive) {
		if m.Role != RoleNode || m.State != Serving {
			continue
		}
		if !found || compareAges(m, best) < 0 {
			best, found = m, true
		}
	}
	return best, found
}

// newestBoots returns of each id in alive the newest boot: a process that restarted
// replaces its older self, even while gossip has not yet declared that dead.
func newestBoots(alive []Member) map[string]Member {
	newest := make(map[string]Member, len(alive))
	for _, m := range alive {
		if have, ok := newest[m.ID]; !ok || m.Boot > have.Boot {
			newest[m.ID] = m
		}
	}
	return newest
}

// compareAges sorts the oldest first.
func compareAges(a, b Member) int {
	return cmp.Or(cmp.Compare(a.Boot, b.Boot), cmp.Compare(a.ID, b.ID))
}
