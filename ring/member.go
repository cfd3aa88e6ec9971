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

// State is a stage in the life of a member. Only a Serving node owns partitions.
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

// Limits of a member's texts, in bytes. A member with the longest of them still fits into the 512
// bytes that gossip carries for each member.
const (
	MaxID   = 100
	MaxAddr = 120

	maxIssuer = MaxID + 1 + 13 // '@' and an int64 in base 36
)

// Member is one process of the cluster, as gossip shows it. Epoch and Issuer are the version of the
// table that it holds, zero and empty if it holds none. In a Table, Epoch, Issuer and Level are
// always zero.
type Member struct {
	// ID stays the same over restarts. The ring is built from ids, so a node that restarts gets its
	// old partitions back.
	ID string
	// Boot is the member's start in Unix nanoseconds. It distinguishes two lives of one id, and the
	// oldest serving node is the coordinator.
	Boot  int64
	Role  Role
	State State
	// Addr is the host:port at which clients and other members reach it; Admin is its admin HTTP
	// address, possibly empty.
	Addr  string
	Admin string
	// Fingerprint is the Fingerprint of its build: members that place keys
	// differently must not mix.
	Fingerprint uint32
	Epoch       uint64
	Issuer      string
	// Level is the protocol level that it speaks. AppendMember leaves it out: gossip carries it
	// behind the encoded member, where builds that know no levels ignore it. TableLevel is the
	// level of the table that it holds, as far as it says so, and is left out as well.
	Level, TableLevel uint8
}

// Name identifies one life of a member: its id and its boot.
func (m Member) Name() string {
	return m.ID + "@" + strconv.FormatInt(m.Boot, 36)
}

// Version returns the version of the table that m holds.
func (m Member) Version() Version { return Version{m.Epoch, m.Issuer} }

// Validate returns an error if m cannot be a member: gossip could not carry its id or an address,
// or a field has no valid value.
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

// Coordinator returns the member that issues tables: the serving node with the smallest boot, then
// the smallest id. ok is false if no node serves. The oldest node has the office, so that nodes
// that come and go do not take it along each time.
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

// newestBoots returns the newest boot of each id in alive: a restarted process replaces its older
// self even before gossip declares the older one dead.
func newestBoots(alive []Member) map[string]Member {
	newest := make(map[string]Member, len(alive))
	for _, m := range alive {
		if have, ok := newest[m.ID]; !ok || m.Boot > have.Boot {
			newest[m.ID] = m
		}
	}
	return newest
}

// compareAges orders members by age, the oldest first.
func compareAges(a, b Member) int {
	return cmp.Or(cmp.Compare(a.Boot, b.Boot), cmp.Compare(a.ID, b.ID))
}
