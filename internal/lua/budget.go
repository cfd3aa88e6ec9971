package lua

// stepsBetweenLooks is how many steps pass between two looks at Stop and at the host's Look, 10 to 50 µs, and
// stepsOfTrial in a trial.
const stepsBetweenLooks, stepsOfTrial = 10_000, 1_000

// Limits are the budgets of a run.
//
// A step is about an instruction: 1 to 5 ns. Library functions charge a step for what takes that long:
// a comparison in a pattern, 32 bytes allocated. Bytes are those that are reachable, plus what has become
// garbage since they were last counted; so a script may allocate any amount in the course of time.
type Limits struct {
	Steps int
	Bytes int
	// Trial: the run may begin anew in another State, and must see there what it saw here. So it ends where a
	// script could see in what States differ (ErrTrial). Bytes are all that it allocates: nothing is counted anew.
	Trial bool
}

// account is what a State has left of its budgets.
type account struct {
	fuel    int // steps until the next look
	reserve int // steps after that
	between int // steps between two looks
	limit   int // bytes
	used    int // bytes: at least those that are reachable
	trial   bool
	inHost  bool
	held    int // of used: charged by running host functions, so perhaps reachable from Go only
}

func (s *State) setLimits(l Limits) {
	s.fuel, s.reserve, s.between = 0, l.Steps, stepsBetweenLooks
	s.limit = l.Bytes
	if s.trial = l.Trial; s.trial {
		s.between = stepsOfTrial
	}
	s.inHost, s.held = false, 0
}

// spend takes n steps. It ends the script when none are left, and when it was stopped.
func (s *State) spend(n int) {
	s.fuel -= n
	if s.fuel < 0 {
		s.refuel()
	}
}

// refuel looks around and takes the steps until the next look from the reserve.
func (s *State) refuel() {
	if s.stop.Load() {
		abort(ErrStopped)
	}
	if s.Look != nil {
		if err := s.Look(); err != nil {
			abort(err)
		}
	}
	left := s.reserve + s.fuel
	if left <= 0 {
		abort(ErrSteps)
	}
	s.fuel = min(left, s.between)
	s.reserve = left - s.fuel
}

// charge accounts for n bytes that are about to be allocated.
func (s *State) charge(n int) {
	if n <= 0 {
		return
	}
	if n > s.limit && s.More == nil {
		abort(ErrMemory)
	}
	s.spend(4 + n>>5) // an allocation, and what fills it
	s.used += n
	if s.inHost {
		s.held += n
	}
	if s.used > s.limit {
		s.recount(n)
	}
	if n >= largeAllocation {
		collectFor(n)
	}
}

// recount finds out what is still reachable once the account is full. n bytes are charged and not yet
// allocated. What running host functions have charged counts whether it is reachable or not: until they
// return, nobody else knows what they hold.
func (s *State) recount(n int) {
	if s.trial {
		abort(ErrMemory)
	}
	used := s.census() + s.held
	if !s.inHost {
		used += n
	}
	s.used = used
	if s.used <= s.limit {
		return
	}
	if s.More != nil {
		s.limit += s.More(s.used - s.limit)
	}
	if s.used > s.limit {
		abort(ErrMemory)
	}
}

// Charge accounts for n bytes that a host function is about to allocate. It does not return if the
// budget is exceeded.
func (c *Call) Charge(n int) { c.thread.state.charge(n) }

// EndTrial ends the script if it is a trial: what the function is about to do or return cannot be repeated in another
// State.
func (c *Call) EndTrial() {
	if c.thread.state.trial {
		abort(ErrTrial)
	}
}

// Spend takes n steps of the budget, for work that a host function is about to do.
func (c *Call) Spend(n int) { c.thread.state.spend(n) }
