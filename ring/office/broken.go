package office

// Broken lists the rules of this package that the simulation breaks to see that it notices. A
// member in production breaks none of them.
type Broken struct {
	ActAfterStandstill bool // a coordinator that stood still goes on as if nothing had happened
	HastyOffice        bool // who takes itself for the coordinator gathers and issues at once
	BuryStrangers      bool // a node of the table that was never met is taken for dead at once
	FoundAtOnce        bool // a node that has met another one founds a cluster before it has asked every join address
	GovernUnmet        bool // a coordinator issues tables before it can have met everybody
	CountSilent        bool // nodes count towards MinMembers though they do not answer
	CountLost          bool // behind a split, nodes count for a side that are seen on another
	IgnoreNews         bool // a coordinator issues what it has planned though others have issued a table meanwhile
	IgnoreReports      bool // every copy counts as in sync
	AskNewcomers       bool // who came while a member stood still confirms the table that it has from that member
	NeverShelter       bool // with one copy, the owner before is not named until the new one serves
}
