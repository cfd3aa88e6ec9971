package ownership

// Broken names rules of this package that the simulation breaks, to prove that it detects the
// violation. A node in production breaks none.
type Broken struct {
	ServeBeforeTake    bool // serve a gained partition before anybody has acknowledged the table
	AckBeforeFlush     bool // acknowledge TAKE before the heirs have everything
	SkipBarrier        bool // assume that every loop executes under the new view at once
	ForgetDeparted     bool // do not ask nodes that a table dropped as dead
	AskBySince         bool // do not ask nodes that know the epoch in which a partition's data began
	AnyoneAcknowledges bool // accept the acknowledgement of another life of a node
	AdoptForeign       bool // acknowledge tables of another lineage
	CopyEarly          bool // begin copies under a table before the copies of an older one are dropped
	IgnoreAbsence      bool // keep what a node had before the cluster went on without it
	LeaveEarly         bool // release a node before the heirs have everything
	NeverFence         bool // serve on after a standstill
	KeepUnconfirmed    bool // serve what may be out of date when nobody is left who knows
	NeverLatch         bool // execute commands behind a refused one
	PassBusy           bool // execute commands behind a write that is executed later
	IgnoreGenerations  bool // go on reading the older generations of a pipe
	CountOldWords      bool // serve on with others that were heard once
	ForgetLapse        bool // serve again, without confirming the table, when others are heard again
	HandHeld           bool // acknowledge a table as if nothing were held
	AskOnce            bool // do not ask again about partitions that were held
	ClaimOutpaced      bool // claim by a table though another node obeys a newer one
	IgnoreEras         bool // believe a pipe about partitions gained since its last RETRY
	ForgetHeld         bool // what a node held when it died counts as handed over
}
