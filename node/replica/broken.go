package replica

// Broken names rules that a simulation breaks, to show that it notices. Machines of a node have
// none.
type Broken struct {
	HandOnce        bool // what is lost of a hand-over is not sent again
	HandStale       bool // a partition is handed over although it is not what was sealed any more
	IgnoreSeals     bool // every copy that was handed over is continued, whatever its seal
	AdmitServed     bool // the stream of an earlier owner goes into what is served
	RefuseBegin     bool // a stream that begins again is refused, and its old copy is kept
	IgnoreSince     bool // a copy is dated by the receiver's table
	PromoteFilling  bool // a copy counts as in sync while its snapshot is still coming
	KeepUnhanded    bool // a copy is kept although its living owner has not handed it over
	HandedIsNothing bool // a copy that was handed over does not count until the new owner feeds it
	TrustSilence    bool // a copy counts as in sync however long its owner has been silent
	NeverAsk        bool // nobody asks for copies that are missing
	ForgetRefusals  bool // a refusal that was lost with its connection is not said again
}

// unbroken is what machines have that break nothing.
var unbroken = new(Broken)
