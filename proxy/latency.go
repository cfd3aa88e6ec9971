package proxy

import (
	"math"
	"math/bits"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
)

// Reading the clock twice for every command would cost up to a fifth of forwarding it. So the proxy
// times one in sampleCommands of the commands that nodes answer: from issuing the command until its
// reply arrives, or until a node announces a large reply.

// sampleCommands is prime, so that of commands in a fixed rotation none is timed always or never.
const sampleCommands = 61

// stopwatch times one command of a session at a time.
type stopwatch struct {
	seq    uint64 // of the command; noCommand: none is timed
	family command.Family
	since  time.Duration // of loop.Clock
}

const noCommand = math.MaxUint64

// issueCounted issues a command that nodes will answer, and counts it.
func (s *client) issueCounted(cmd *command.Command) {
	w := s.w
	w.stats.Commands[cmd.ID]++
	// If a command is still being timed, the next command is timed instead.
	if w.untilSample--; w.untilSample <= 0 && s.timed.seq == noCommand {
		w.untilSample = sampleCommands
		s.timed = stopwatch{s.tail, cmd.Family(), w.loop.Clock()}
	}
	s.issue()
}

// replied stops the watch if it times that command.
func (s *client) replied(seq uint64) {
	if seq == s.timed.seq {
		s.w.stats.Latency[s.timed.family].Note(s.w.loop.Clock() - s.timed.since)
		s.timed.seq = noCommand
	}
}

// batchBuckets is the number of BatchSizes: the last one is for 2048 and more.
const batchBuckets = 13

// countBatch counts a batch of that many requests that are written for the first time; 0: it is the
// rest of one.
func (s *Stats) countBatch(requests int) {
	if requests > 0 {
		s.BatchSizes[min(bits.Len(uint(requests)), batchBuckets-1)]++
		s.BatchRequests += uint64(requests)
	}
}
