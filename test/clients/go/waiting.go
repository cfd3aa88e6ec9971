package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// waiting has the operations that the scenario needs on lists and sorted sets to which others push.
type waiting interface {
	// popFirst is BLPOP. It returns nothing when the time is up.
	popFirst(ctx context.Context, keys []string, timeout time.Duration) (keyAndItem []string, err error)
	// awaitMove is BLMOVE, awaitLowest BZPOPMIN.
	awaitMove(ctx context.Context, from, to string, timeout time.Duration) (string, error)
	awaitLowest(ctx context.Context, key string, timeout time.Duration) (string, scored, error)
	// info returns the section of INFO that has the number of blocked clients.
	info(ctx context.Context) (string, error)
}

const (
	shortly   = 100 * time.Millisecond // until a pop of an empty list gives up
	waitsLong = 10 * time.Second       // for what is pushed
)

// blocking pops an empty list until the time is up, and then what another connection pushes.
func (s *scenario) blocking() error {
	c, empty := s.client, s.key("{wait}:empty")
	begin := time.Now()
	got, err := c.popFirst(s.ctx, []string{empty}, shortly)
	if err := expect("BLPOP of an empty list", len(got), 0, err); err != nil {
		return err
	}
	if took := time.Since(begin); took < shortly {
		return fmt.Errorf("BLPOP waits %v, want %v", took, shortly)
	}
	queue, done, board := s.key("{wait}:queue"), s.key("{wait}:done"), s.key("{wait}:board")
	pushing := s.whenBlocked(func() error { _, err := c.push(s.ctx, queue, []string{"a"}); return err })
	got, err = c.popFirst(s.ctx, []string{empty, queue}, waitsLong)
	if err := expect("BLPOP", got, []string{queue, "a"}, firstOf(<-pushing, err)); err != nil {
		return err
	}
	pushing = s.whenBlocked(func() error { _, err := c.push(s.ctx, queue, []string{"b", "c"}); return err })
	moved, err := c.awaitMove(s.ctx, queue, done, waitsLong)
	if err := expect("BLMOVE", moved, "b", firstOf(<-pushing, err)); err != nil {
		return err
	}
	left, err := c.items(s.ctx, queue)
	if err := expect("the source", left, []string{"c"}, err); err != nil {
		return err
	}
	left, err = c.items(s.ctx, done)
	if err := expect("the target", left, []string{"b"}, err); err != nil {
		return err
	}
	pushing = s.whenBlocked(func() error {
		_, err := c.rank(s.ctx, board, map[string]float64{"Ada": 1.5})
		return err
	})
	key, lowest, err := c.awaitLowest(s.ctx, board, waitsLong)
	err = expect("BZPOPMIN", lowest, scored{"Ada", 1.5}, firstOf(<-pushing, err))
	return expect("its key", key, board, err)
}

// whenBlocked does what it is told as soon as a client is blocked.
func (s *scenario) whenBlocked(do func() error) <-chan error {
	done := make(chan error, 1)
	go func() {
		err := untilItWorks(func() error {
			text, err := s.client.info(s.ctx)
			if err == nil && !slices.Contains(strings.Split(text, "\r\n"), "blocked_clients:1") {
				err = errors.New("no client is blocked")
			}
			return err
		})
		if err == nil {
			err = do()
		}
		done <- err
	}()
	return done
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
