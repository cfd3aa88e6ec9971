package order

// Broken lists the rules of this package that test/sim and TestBrokenRulesInRandomSchedules break
// to see that they notice. A proxy breaks none of them: it has a nil *Broken.
type Broken struct {
	RepeatAll    bool // send again what must not be executed twice, when its pipe broke
	RepeatOld    bool // send a write again that a later one of its session may have replaced
	RetryEarly   bool // say RETRY while refusals are still on their way
	ResendEarly  bool // send parked requests again before all others of the session have come back
	PassParked   bool // send new requests of a session that parks others
	ChangeLanes  bool // change a session's lane while requests are outstanding in the old one
	ForgetStrays bool // use another lane while the node may still execute what was sent in the old one
	IgnoreRoutes bool // use a new route while requests are outstanding by the old one

	ForgetDeferred   bool // do not send deferred requests again when their pipe broke
	UncountDeferred  bool // take deferred requests for answered
	OvertakeDeferred bool // send for a partition while a write to it is deferred

	PassEarly    bool // end the turn of a claim ahead of the pop
	PassUnsent   bool // end the turn of a claim whose pop is parked
	ForgetUndone bool // do not make a claim again that came back
	ForgetAges   bool // claims, and what is sent again, do not say how long their command has waited
	ForgetLimits bool // do not end a command with claims when its time is up
	ForgetIDs    bool // a $ does not keep the ID that a node said it is

	ForgetDeadlines bool // park blocking commands as others, and send them again with all of their time
	ForgetProgress  bool // the pauses before RETRY grow although what was sent again behind it is executed
}

func (b *Broken) repeatsOld() bool    { return b != nil && b.RepeatOld }
func (b *Broken) repeatsAll() bool    { return b != nil && b.RepeatAll }
func (b *Broken) retriesEarly() bool  { return b != nil && b.RetryEarly }
func (b *Broken) resendsEarly() bool  { return b != nil && b.ResendEarly }
func (b *Broken) passesParked() bool  { return b != nil && b.PassParked }
func (b *Broken) forgetsStrays() bool { return b != nil && b.ForgetStrays }
func (b *Broken) ignoresRoutes() bool { return b != nil && b.IgnoreRoutes }
func (b *Broken) changesLanes() bool  { return b != nil && b.ChangeLanes }

func (b *Broken) forgetsDeferred() bool   { return b != nil && b.ForgetDeferred }
func (b *Broken) uncountsDeferred() bool  { return b != nil && b.UncountDeferred }
func (b *Broken) overtakesDeferred() bool { return b != nil && b.OvertakeDeferred }

func (b *Broken) passesEarly() bool   { return b != nil && b.PassEarly }
func (b *Broken) passesUnsent() bool  { return b != nil && b.PassUnsent }
func (b *Broken) forgetsUndone() bool { return b != nil && b.ForgetUndone }
func (b *Broken) forgetsAges() bool   { return b != nil && b.ForgetAges }
func (b *Broken) forgetsLimits() bool { return b != nil && b.ForgetLimits }
func (b *Broken) forgetsIDs() bool    { return b != nil && b.ForgetIDs }

func (b *Broken) forgetsDeadlines() bool { return b != nil && b.ForgetDeadlines }
func (b *Broken) forgetsProgress() bool  { return b != nil && b.ForgetProgress }
