package office

import (
	"errors"
	"slices"

	"github.com/dunlin-cache/dunlin/ring"
)

// A node that has not run for a while must not trust its own table: the others may have replaced it
// meanwhile, and any single other node may have slept as long. So it asks all of them.
//
//	doubted: {a b c}, a stood still     a newcomer d has a's table from a, and knows no more than a
//	  b answers with doubted, or a newer one ──▶ that is the current table
//	  only d answers, b and c are dead       ──▶ nobody knows what b and c did: Alone
//
// If b has died and d listens at its address, gossip may not have brought d yet. So the member names whom
// it asks (NamesWitnesses), and d does not answer. A node below that level answers whomever one asks for: there,
// an answer from the address of a node that is not alive decides nothing, and the member asks again until gossip
// shows who is there.

// Told is a node's answer to the question for its table.
type Told struct {
	By    ring.Member // whom gossip calls alive at the address that was asked, or else who was asked
	Table *ring.Table
}

var (
	errNobody   = errors.New("no node that can know has told its table")
	errMinority = errors.New("too few nodes are alive")
	// ErrForeign is returned while the coordinator, perhaps this member, has a split to heal.
	ErrForeign = errors.New("another node holds a table of a foreign lineage")
)

// Witnesses returns the nodes to be asked for their tables: those that are alive or in the table.
// One that does not answer is waited for as long as it takes to declare it dead.
func (c *Config) Witnesses(host Host) []ring.Member {
	nodes := c.otherNodes(host.Alive())
	if t := host.Table(); t != nil {
		nodes = append(nodes, c.otherNodes(t.Nodes)...)
	}
	return nodes
}

// NamesWitnesses reports whether a member that has the table says the names of the witnesses that it asks: all
// members know that question.
func NamesWitnesses(t *ring.Table) bool { return t != nil && t.Level >= ring.GoneLevel }

// Confirm adopts what the witnesses have answered with, and returns the table that is the current
// one by them. doubted is the table that the member had when it began to doubt; nil: none. An error
// means that they have to be asked again.
func (c *Config) Confirm(host Host, doubted *ring.Table, told []Told) (*ring.Table, error) {
	if need := c.Outdated(host.Alive()); need > 0 {
		return nil, &ring.LevelError{Need: uint64(need)}
	}
	few := len(told)+1 < c.MinMembers && !c.Broken.CountSilent // though not all of them are declared dead yet
	switch {
	case Minority(host.Alive(), c.MinMembers), len(told) > 0 && few:
		return nil, errMinority
	case len(told) == 0:
		return nil, errNobody
	}
	for _, t := range newestFirst(tablesOf(told)) {
		host.Adopt(t, nil)
	}
	current := host.Table()
	if foreignTo(current, told) {
		return nil, ErrForeign
	}
	if !c.Broken.AskNewcomers && !slices.ContainsFunc(told, func(t Told) bool { return c.knows(host, doubted, t) }) {
		return nil, errNobody
	}
	return current, nil
}

// knows reports whether a node that has answered would know if others had gone on without this
// member since it had the doubted table. One that came later may have that table, and what this
// member has issued since, from this member.
func (c *Config) knows(host Host, doubted *ring.Table, t Told) bool {
	return !c.HasOthers(doubted) || c.wasThere(doubted, t) && isAlive(host.Alive(), t.By) ||
		t.Table.Issuer != c.Self.Name() && t.Table.Newer(doubted)
}

// wasThere reports whether the doubted table names who has answered.
func (c *Config) wasThere(doubted *ring.Table, t Told) bool {
	return doubted != nil && doubted.NodeIndex(t.By.ID, t.By.Boot) >= 0
}

func isAlive(alive []ring.Member, m ring.Member) bool {
	return slices.ContainsFunc(alive, func(a ring.Member) bool { return a.Name() == m.Name() })
}

// HasOthers reports whether a table names nodes besides this member, which can go on without it.
func (c *Config) HasOthers(t *ring.Table) bool { return t != nil && len(c.otherNodes(t.Nodes)) > 0 }

func foreignTo(current *ring.Table, told []Told) bool {
	return slices.ContainsFunc(told, func(t Told) bool {
		return current.Version() != t.Table.Version() && !current.Descends(t.Table.Version())
	})
}

func tablesOf(told []Told) (tables []*ring.Table) {
	for _, t := range told {
		tables = append(tables, t.Table)
	}
	return tables
}

// Alone reports whether nobody is left who can know whether the others went on without this member
// since it had the doubted table, though as few as there are are enough: no other node is alive but
// those that have answered, and these came later; and nobody has answered in the place of a node that
// is not alive.
func (c *Config) Alone(host Host, doubted *ring.Table, told []Told) bool {
	alive := host.Alive()
	if Minority(alive, c.MinMembers) || c.Outdated(alive) > 0 || len(told) > 0 && foreignTo(host.Table(), told) {
		return false
	}
	if slices.ContainsFunc(told, func(t Told) bool { return c.wasThere(doubted, t) && !isAlive(alive, t.By) }) {
		return false
	}
	return !slices.ContainsFunc(c.otherNodes(alive), func(m ring.Member) bool {
		return !slices.ContainsFunc(told, func(t Told) bool { return t.By.Name() == m.Name() && !c.knows(host, doubted, t) })
	})
}
