package netloop

import "time"

// Turn says when the commands of one input have kept the loop for long enough. A read has thousands of short
// ones, and what the process answers or queues by itself takes a microsecond or more each. A handler that stops
// then yields (Conn.Yield), and goes on when the others have had their turn. The zero Turn begins with the first
// command.
type Turn struct {
	commands int
	asks     bool          // behind the present command
	since    time.Duration // when the loop's clock was first asked; 0: not yet
}

const (
	// turnCommands is how often a turn asks for the time: a clock costs as much as a part of a command.
	turnCommands = 64
	// TurnTime is how long the commands of one input may keep the loop. The last one may exceed it.
	TurnTime = 300 * time.Microsecond
)

// Ask has the turn ask for the time behind the present command, which takes long.
func (t *Turn) Ask() { t.asks = true }

// IsOver is called behind each command.
func (t *Turn) IsOver(l *Loop) bool {
	t.commands++
	return (t.asks || t.commands%turnCommands == 0) && t.isLong(l.Clock())
}

func (t *Turn) isLong(now time.Duration) bool {
	t.asks = false
	if t.since == 0 {
		t.since = now
	}
	return now-t.since > TurnTime
}
