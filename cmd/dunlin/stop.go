package main

import (
	"context"
	"log/slog"
	"time"
)

// stopTime bounds an orderly stop. It is below the 30 s after which container
// platforms kill by default.
const stopTime = 20 * time.Second

// stopStack remembers how to stop what was started, and does it in the reverse
// order: what was started last uses what was started before it. The zero value
// is not ready; log is needed.
type stopStack struct {
	log   *slog.Logger
	steps []stopStep
}

type stopStep struct {
	name string
	stop func(context.Context) error
}

// push adds a step. Its context ends when the time for the whole stop is over;
// stop must then return soon, having closed what it can.
func (s *stopStack) push(name string, stop func(context.Context) error) {
	s.steps = append(s.steps, stopStep{name, stop})
}

// stopAll runs all steps, whatever fails: a stop that cannot be orderly must
// still be a stop.
func (s *stopStack) stopAll() {
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
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
