package proxy

import (
	"github.com/dunlin-cache/dunlin/internal/command"
)

// Functions are settings of the cluster. A proxy needs none of them: FCALL goes to its node as EVAL does, and FUNCTION
// to any node. A change is answered when all members have it. Commands of its session that follow in a pipeline wait
// for that: they may go to other nodes, which would not know a function yet.

// toAnyNode sends a command to one of the nodes. It reports false if the command must wait.
func (s *client) toAnyNode(cmd *command.Command, args [][]byte, raw []byte) bool {
	if cmd.IsFunction() {
		if r := s.mayScript(cmd); r != reached {
			return r == below
		}
	}
	changes := cmd.Flags&command.Write != 0
	if changes && s.Outstanding() > 0 {
		return false
	}
	if !s.forwardTo(s.w.order.Anywhere(), cmd, args, raw) {
		return false
	}
	if changes && s.Outstanding() > 0 {
		s.blocking, s.mutes, s.waits = true, true, s.tail-1
	}
	return true
}
