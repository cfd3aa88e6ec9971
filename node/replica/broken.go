package replica

// Broken names rules that a simulation breaks, to prove that it detects the violation. A node
// breaks none.
type Broken struct {
	HandOnce        bool // do not send again what is lost of a hand-over
	HandStale       bool // hand over a partition that has changed since it was sealed
	IgnoreSeals     bool // continue every copy that was handed over, whatever its seal
	AdmitServed     bool // apply the stream of an earlier owner to a partition that is served
	RefuseBegin     bool // refuse a feed that begins again, and keep its old copy
	IgnoreSince     bool // date a copy by the receiver's table
	PromoteFilling  bool // count a copy as in sync while its snapshot still arrives
	KeepUnhanded    bool // keep a copy although its living owner has not handed it over
	HandedIsNothing bool // do not count a copy that was handed over until the new owner feeds it
	TrustSilence    bool // count a copy as in sync however long its owner has been silent
	NeverAsk        bool // do not ask for copies that are missing
	StopInSilence   bool // do not tell a receiver that it is fed no longer
	ForgetRefusals  bool // do not repeat a refusal that was lost with its connection
}

// unbroken breaks no rule.
var unbroken = new(Broken)
