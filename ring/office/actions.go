package office

import "github.com/dunlin-cache/dunlin/ring"

// Action is something that the member does for its Machine.
type Action interface{ action() }

type (
	// Changed says that the alive members are others than before.
	Changed struct{ Before, Alive []ring.Member }
	// TooFew says that fewer nodes are alive than MinMembers, and that there is a table: nothing
	// should be served until it is confirmed.
	TooFew struct{}
	// Outdated says that the cluster needs a higher protocol level than this member speaks: nothing
	// should be served while the member is there that holds a table of that level.
	Outdated struct{ Need uint8 }
	// Superseded says that the network was split, and that the other side's lineage will win.
	Superseded struct{}
	// Search asks every join address, once: the next Event that follows has Searched.
	Search struct{}
	// Unheard says that too few nodes answer to issue a table, for the first time in a row.
	Unheard struct{}
	// Issued says that this member has issued and adopted a table. Healed: there were versions of
	// other lineages; Sides is of how many a table was at hand, ours included.
	Issued struct {
		Table  *ring.Table
		Healed bool
		Sides  int
	}
	// Paused says that the table is as the operator wanted.
	Paused struct{ Order *bool }
	// NoOffice says that this member is not the coordinator: it drops orders to one.
	NoOffice struct{}
)

func (Changed) action()    {}
func (TooFew) action()     {}
func (Outdated) action()   {}
func (Superseded) action() {}
func (Search) action()     {}
func (Unheard) action()    {}
func (Issued) action()     {}
func (Paused) action()     {}
func (NoOffice) action()   {}
