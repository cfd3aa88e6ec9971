package order

import (
	"time"
)

// ActionKind says what the shell is to do.
type ActionKind uint8

// The kinds of actions. The shell performs them in the order of Actions.
const (
	// Dial: connect Pipe within DialTimeout; then call Connected and, once the node has accepted
	// the pipe, Opened. On failure call Lost.
	Dial ActionKind = iota
	// Close: close the connection of Pipe, because of Err. Those that wait for room in it may try
	// again.
	Close
	// Write: write what Pipe has queued.
	Write
	// Fail: answer Request as Outcome says, mostly with an error.
	Fail
	// Undone: tell the Asker that is Request's Part.
	Undone
	// Proceed: Session may be able to take its next command.
	Proceed
	// Arm: call RetryTimer in After. This replaces the time of an earlier Arm.
	Arm
	// Post: call RetryTurn in the next iteration.
	Post
	// Watch: call Tick every SilenceTick, until it reports false.
	Watch
	// Refresh: a node knows a newer table.
	Refresh
	// WaitParked: the blocking command of Session waits to be sent.
	WaitParked
	// ClaimPop: have Session pop from the keys of Claims.AppendPopped, by Claims.Pop, Submit and
	// Claims.Popped. If the pop finds nothing, call Claims.GoOn.
	ClaimPop
	// ClaimWait: the command of Claims waits.
	ClaimWait
	// ClaimEnd: the claims have ended. Answer their command Reply, which is a node's error, or null if
	// Reply is nil: its time is up. With Err a node is out of step.
	ClaimEnd
	// ClaimArm: call Claims.Tick at Claims.Due. This replaces the time of the earlier ClaimArm.
	ClaimArm
)

// Outcome is why a request ends without the reply of a node.
type Outcome uint8

const (
	// TooLate: it was parked for too long. No node has executed it, or it only reads.
	TooLate Outcome = iota
	// NoMemory: it had to be parked, and there was no memory for it. No node has executed it, or it only
	// reads.
	NoMemory
	// Unknown: a node may have executed it, and it must not be executed twice.
	Unknown
	// WaitOver: it is a blocking command whose time is up, or that was canceled, while no node had it. Answer null,
	// as if it had found nothing.
	WaitOver
)

// Action is one thing that the shell does for a Machine.
type Action struct {
	Kind    ActionKind
	Outcome Outcome
	Pipe    *Pipe
	Session *Session
	Request Request
	After   time.Duration
	Claims  *Claims // of Session
	Reply   []byte  // of ClaimEnd

	Err      error // of Close and ClaimEnd
	Inflight int   // requests that the pipe had when it was closed
	Notable  bool  // the pipe was open, or this is the first attempt in a row that failed
}

func (m *Machine) act(a Action) { m.actions = append(m.actions, a) }

// HasActions reports whether Actions would return any.
func (m *Machine) HasActions() bool { return len(m.actions) > 0 }

// Actions returns the actions since the last call. The shell must perform them in order, before the
// next event of this Machine that does not follow from them. The result is valid until the next
// call.
func (m *Machine) Actions() []Action {
	batch := m.actions
	clear(m.spare) // let what it points to be collected
	if cap(m.spare) > keepActions {
		m.spare = nil
	}
	m.actions, m.spare = m.spare[:0], batch
	return batch
}

// keepActions is the longest list that is kept for reuse: a pipe that breaks may need tens of
// thousands.
const keepActions = 1024
