package main

import (
	"context"
	"log/slog"
	"time"
)

// stopTime bounds an orderly stop, without the hand-over of a node's data, which --drain-timeout
// bounds. A container platform must allow a node the sum of both before it kills the process.
const stopTime = 20 * time.Second

// stopStack remembers how to stop what was started, and stops it in the reverse order, because what
// was started last uses what was started before. The zero value is not ready: log and limit are
// required.
type stopStack struct {
	log   *slog.Logger
	limit time.Duration // of the whole stop
	steps []stopStep
}

type stopStep struct {
	name string
	stop func(context.Context) error
}

// push adds a step. The context of the step ends when the time for the whole stop is over; stop
// must then return soon, having closed what it can.
func (s *stopStack) push(name string, stop func(context.Context) error) {
	s.steps = append(s.steps, stopStep{name, stop})
}

// stopAll runs all steps, even after one fails: a stop that cannot be orderly must still be a stop.
func (s *stopStack) stopAll() {
	ctx, cancel := context.WithTimeout(context.Background(), s.limit)
	defer cancel()
	for len(s.steps) > 0 {
		last := s.steps[len(s.steps)-1]
		s.steps = s.steps[:len(s.steps)-1]
		begin := time.Now()
		err := last.stop(ctx)
		if err != nil {
			s.log.Warn("cannot stop in order", "part", last.name, "err", err)
		}
		s.log.Debug("stopped", "part", last.name, "took", time.Since(begin))
	}
}
