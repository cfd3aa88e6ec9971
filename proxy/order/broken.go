package order

// Broken are rules that test/sim and TestBrokenRulesInRandomSchedules break, to see that they notice. In a proxy there are none: a
// nil *Broken keeps all.
type Broken struct {
	RepeatAll    bool // what must not be executed twice is sent again when its pipe broke
	RetryEarly   bool // RETRY is said while refusals are still on their way
	ResendEarly  bool // held requests are sent again before all others of the session have come back
	PassHeld     bool // a session sends new requests while it holds others
	ChangeLanes  bool // a session changes its lane while requests are outstanding in the old one
	ForgetStrays bool // a session changes its lane to a node that may still execute what it sent in the old one
	IgnoreRoutes bool // a session goes by a new route while requests are outstanding by the old one
}

func (b *Broken) repeatsAll() bool    { return b != nil && b.RepeatAll }
func (b *Broken) retriesEarly() bool  { return b != nil && b.RetryEarly }
func (b *Broken) resendsEarly() bool  { return b != nil && b.ResendEarly }
func (b *Broken) passesHeld() bool    { return b != nil && b.PassHeld }
func (b *Broken) forgetsStrays() bool { return b != nil && b.ForgetStrays }
func (b *Broken) ignoresRoutes() bool { return b != nil && b.IgnoreRoutes }
func (b *Broken) changesLanes() bool  { return b != nil && b.ChangeLanes }
