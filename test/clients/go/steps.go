package main

import (
	"context"
	"fmt"
	"time"
)

// ownSteps is a program with steps of its own.
type ownSteps struct {
	module string
	steps  func(addr string) []step
}

type step struct {
	name string
	run  func(ctx context.Context) error
}

var programs = map[string]ownSteps{
	"redsync":          {"github.com/go-redsync/redsync/v4", redsyncSteps},
	"redislock":        {"github.com/bsm/redislock", redislockSteps},
	"redis_rate":       {"github.com/go-redis/redis_rate/v10", redisRateSteps},
	"asynq":            {"github.com/hibiken/asynq", asynqSteps},
	"centrifuge":       {"github.com/centrifugal/centrifuge", centrifugeSteps},
	"go-redis-cache":   {"github.com/go-redis/cache/v9", cacheSteps},
	"go-redis-streams": {"github.com/redis/go-redis/v9", streamSteps},
}

func (p ownSteps) run(addr string) {
	for _, s := range p.steps(addr) {
		if err := s.run(context.Background()); err != nil {
			fmt.Printf("FAIL %s: %v\n", s.name, err)
		} else {
			fmt.Println("ok", s.name)
		}
	}
}

// restarted has the proxy restarted, and returns when that is done. It is killed first if how is "kill",
// and told to end if that is "restart".
func restarted(how string) error {
	fmt.Println(how)
	_, err := driver.ReadString('\n')
	return err
}

// behindRestart has the proxy restarted, and repeats work until it succeeds.
func behindRestart(work func(ctx context.Context) error) step {
	return step{"reconnect", func(ctx context.Context) error {
		if err := restarted("restart"); err != nil {
			return err
		}
		return untilItWorks(func() error { return work(ctx) })
	}}
}

// untilItWorks repeats work, which may fail until the proxy is back.
func untilItWorks(work func() error) error { return untilItWorksFor(reconnectTimeout, work) }

func untilItWorksFor(patience time.Duration, work func() error) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		err := work()
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

// want reports where got is not what was expected.
func want[T comparable](what string, got, want T, err error) error {
	if err == nil && got != want {
		err = fmt.Errorf("got %v, want %v", got, want)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
