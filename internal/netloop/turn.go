package netloop

import "time"

// Turn says when the commands of one input have kept the loop for long enough. A read has thousands of short
// ones, and what the process answers or queues by itself takes a microsecond or more each. A handler that stops
// then yields (Conn.Yield), and goes on when the others have had their turn. The zero Turn begins with the first
// command.
type Turn struct {
	commands int
	since    time.Duration // when the loop's clock was first asked
}

const (
	// turnCommands is how often a turn asks for the time: a clock costs as much as a part of a command.
	turnCommands = 64
	turnTime     = 300 * time.Microsecond
)

// IsOver is called behind each command.
func (t *Turn) IsOver(l *Loop) bool {
	t.commands++
	return t.commands%turnCommands == 0 && t.isLong(l.Clock())
}

func (t *Turn) isLong(now time.Duration) bool {
	if t.since == 0 {
		t.since = now
	}
	return now-t.since > turnTime
}
