package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	group     = "workers"
	streamed  = 4 // streams, in several slots
	consumers = 3
	produced  = 400 // entries, and a quarter as many after the restart
)

// streamTest has consumers of several streams, and one stream that they leave alone.
type streamTest struct {
	client *redis.Client
	keys   []string
	alone  string
	ids    []string // of alone's entries
	ledger ledger
}

func streamSteps(addr string) []step {
	s := &streamTest{
		client: redis.NewClient(&redis.Options{Addr: addr}),
		alone:  "go-redis-streams:alone",
		ledger: ledger{delivered: map[string]int{}},
	}
	for i := range streamed {
		s.keys = append(s.keys, fmt.Sprint("go-redis-streams:", i))
	}
	return []step{
		{"create", s.create},
		{"consume", s.consume},
		{"claim", s.claim},
		{"info", s.info},
		{"trim", s.trim},
		{"reconnect", s.reconnect},
	}
}

// ledger counts how often each entry was delivered, and how many were acknowledged.
type ledger struct {
	mu           sync.Mutex
	delivered    map[string]int
	acknowledged int64
	problem      error // the latest one
}

func (l *ledger) deliver(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delivered[name]++
}

func (l *ledger) acknowledge(n int64, problem error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acknowledged += n
	if problem != nil {
		l.problem = problem
	}
}

// await waits until n entries are acknowledged, and checks that each was delivered once.
func (l *ledger) await(n int) error {
	for deadline := time.Now().Add(reconnectTimeout); ; time.Sleep(5 * time.Millisecond) {
		done, err := l.complete(n)
		if done || err != nil {
			return err
		}
		if time.Now().After(deadline) {
			l.mu.Lock()
			defer l.mu.Unlock()
			return fmt.Errorf("%d of %d entries are acknowledged; %v", l.acknowledged, n, l.problem)
		}
	}
}

func (l *ledger) complete(n int) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, times := range l.delivered {
		if times != 1 {
			return false, fmt.Errorf("%s is delivered %d times", name, times)
		}
	}
	if l.acknowledged < int64(n) {
		return false, nil
	}
	got := [2]int{len(l.delivered), int(l.acknowledged)}
	return true, want("entries delivered and acknowledged", got, [2]int{n, n}, nil)
}

func (s *streamTest) create(ctx context.Context) error {
	for _, key := range append([]string{s.alone}, s.keys...) {
		if err := s.client.XGroupCreateMkStream(ctx, key, group, "$").Err(); err != nil {
			return fmt.Errorf("XGROUP CREATE: %w", err)
		}
		if err := s.client.XGroupCreateMkStream(ctx, key, group, "$").Err(); !redis.HasErrorPrefix(err, "BUSYGROUP") {
			return fmt.Errorf("XGROUP CREATE again: %w", err)
		}
	}
	n, err := s.client.Exists(ctx, s.keys...).Result()
	return want("EXISTS", n, streamed, err)
}

// consume has consumers, which go on to the end, wait for what two producers add.
func (s *streamTest) consume(ctx context.Context) error {
	for i := range consumers {
		go s.work(ctx, fmt.Sprint("consumer", i))
	}
	both := make(chan error, 2)
	for _, name := range []string{"one", "two"} {
		go func() { both <- s.produce(ctx, name, produced/2) }()
	}
	if err := errors.Join(<-both, <-both); err != nil {
		return fmt.Errorf("XADD: %w", err)
	}
	return s.ledger.await(produced)
}

func (s *streamTest) produce(ctx context.Context, producer string, n int) error {
	for i := range n {
		if _, err := s.add(ctx, s.keys[i%streamed], fmt.Sprint(producer, i)); err != nil {
			return err
		}
	}
	return nil
}

func (s *streamTest) add(ctx context.Context, key, name string) (id string, err error) {
	return s.client.XAdd(ctx, &redis.XAddArgs{Stream: key, Values: []string{"name", name}}).Result()
}

// work is one consumer of all streams.
func (s *streamTest) work(ctx context.Context, consumer string) {
	args := &redis.XReadGroupArgs{Group: group, Consumer: consumer, Count: 10, Block: 5 * time.Second}
	args.Streams = append(args.Streams, s.keys...)
	for range s.keys {
		args.Streams = append(args.Streams, ">")
	}
	for {
		read, err := s.client.XReadGroup(ctx, args).Result()
		if err != nil && !errors.Is(err, redis.Nil) { // the proxy is away, perhaps
			s.ledger.acknowledge(0, err)
			time.Sleep(20 * time.Millisecond)
		}
		for _, stream := range read {
			for _, m := range stream.Messages {
				s.ledger.deliver(m.Values["name"].(string))
			}
			s.ledger.acknowledge(s.client.XAck(ctx, stream.Stream, group, idsOf(stream.Messages)...).Result())
		}
	}
}

func idsOf(messages []redis.XMessage) (ids []string) {
	for _, m := range messages {
		ids = append(ids, m.ID)
	}
	return ids
}

// read reads new entries of the stream that is left alone, or what is pending of them.
func (s *streamTest) read(ctx context.Context, consumer, from string, count int64) ([]string, error) {
	read, err := s.client.XReadGroup(ctx, &redis.XReadGroupArgs{
		Group: group, Consumer: consumer, Streams: []string{s.alone, from}, Count: count, Block: -1,
	}).Result()
	if err != nil {
		return nil, err
	}
	return idsOf(read[0].Messages), nil
}

// claim lets a consumer vanish with 60 of 100 entries. Another one claims these, and acknowledges all but ten.
func (s *streamTest) claim(ctx context.Context) error {
	for i := range 100 {
		id, err := s.add(ctx, s.alone, fmt.Sprint(i))
		if err != nil {
			return fmt.Errorf("XADD: %w", err)
		}
		s.ids = append(s.ids, id)
	}
	read, err := s.read(ctx, "gone", ">", 60)
	if err := expect("XREADGROUP", read, s.ids[:60], err); err != nil {
		return err
	}
	if err := s.pending(ctx, redis.XPending{
		Count: 60, Lower: s.ids[0], Higher: s.ids[59], Consumers: map[string]int64{"gone": 60},
	}); err != nil {
		return err
	}
	var claimed []string
	for start := "0-0"; start != "0-0" || claimed == nil; {
		var some []redis.XMessage
		some, start, err = s.client.XAutoClaim(ctx, &redis.XAutoClaimArgs{
			Stream: s.alone, Group: group, Consumer: "heir", Start: start, Count: 25,
		}).Result()
		if err != nil || len(some) == 0 {
			return fmt.Errorf("XAUTOCLAIM gives %d entries, %w", len(some), err)
		}
		claimed = append(claimed, idsOf(some)...)
	}
	if err := expect("XAUTOCLAIM", claimed, s.ids[:60], nil); err != nil {
		return err
	}
	rest, err := s.read(ctx, "heir", ">", 100)
	if err := expect("XREADGROUP", rest, s.ids[60:], err); err != nil {
		return err
	}
	n, err := s.client.XAck(ctx, s.alone, group, s.ids[10:]...).Result()
	if err := want("XACK", n, 90, err); err != nil {
		return err
	}
	mine, err := s.read(ctx, "heir", "0", 100)
	return expect("XREADGROUP of what is pending", mine, s.ids[:10], err)
}

func (s *streamTest) pending(ctx context.Context, want redis.XPending) error {
	got, err := s.client.XPending(ctx, s.alone, group).Result()
	return expect("XPENDING", got, &want, err)
}

func (s *streamTest) info(ctx context.Context) error {
	for _, key := range s.keys {
		groups, err := s.client.XInfoGroups(ctx, key).Result()
		if err != nil || len(groups) != 1 {
			return fmt.Errorf("XINFO GROUPS: %v, %w", groups, err)
		}
		counts := [3]int64{groups[0].Pending, groups[0].Lag, groups[0].EntriesRead}
		if err := want("pending, lag, read", counts, [3]int64{0, 0, produced / streamed}, nil); err != nil {
			return err
		}
	}
	groups, err := s.client.XInfoGroups(ctx, s.alone).Result()
	if err := expect("XINFO GROUPS", groups, []redis.XInfoGroup{
		{Name: group, Consumers: 2, Pending: 10, LastDeliveredID: s.ids[99], EntriesRead: 100},
	}, err); err != nil {
		return err
	}
	owed := map[string]int64{}
	consumers, err := s.client.XInfoConsumers(ctx, s.alone, group).Result()
	for _, c := range consumers {
		owed[c.Name] = c.Pending
	}
	if err := expect("XINFO CONSUMERS", owed, map[string]int64{"gone": 0, "heir": 10}, err); err != nil {
		return err
	}
	stream, err := s.client.XInfoStream(ctx, s.alone).Result()
	if err != nil {
		return fmt.Errorf("XINFO STREAM: %w", err)
	}
	counts := [3]int64{stream.Length, stream.Groups, stream.EntriesAdded}
	if err := want("XINFO STREAM's counts", counts, [3]int64{100, 1, 100}, nil); err != nil {
		return err
	}
	ends := [4]string{stream.FirstEntry.ID, stream.LastEntry.ID, stream.LastGeneratedID, stream.MaxDeletedEntryID}
	if err := want("XINFO STREAM's IDs", ends, [4]string{s.ids[0], s.ids[99], s.ids[99], "0-0"}, nil); err != nil {
		return err
	}
	full, err := s.client.XInfoStreamFull(ctx, s.alone, 5).Result()
	if err != nil || len(full.Groups) != 1 {
		return fmt.Errorf("XINFO STREAM FULL: %v, %w", full, err)
	}
	g := full.Groups[0]
	parts := [3]int{len(full.Entries), int(g.PelCount), len(g.Consumers)}
	return want("XINFO STREAM FULL's counts", parts, [3]int{5, 10, 2}, nil)
}

// trim removes the entries that are pending, among others: who claims those is told that they are gone.
func (s *streamTest) trim(ctx context.Context) error {
	last := &redis.XAddArgs{Stream: s.alone, MaxLen: 50, Values: []string{"name", "last"}}
	if err := s.client.XAdd(ctx, last).Err(); err != nil {
		return fmt.Errorf("XADD MAXLEN: %w", err)
	}
	n, err := s.client.XLen(ctx, s.alone).Result()
	if err := want("XLEN", n, 50, err); err != nil {
		return err
	}
	n, err = s.client.XTrimMinID(ctx, s.alone, s.ids[60]).Result()
	if err := want("XTRIM MINID", n, 9, err); err != nil {
		return err
	}
	claimed, _, gone, err := s.client.XAutoClaimWithDeleted(ctx, &redis.XAutoClaimArgs{
		Stream: s.alone, Group: group, Consumer: "third", Start: "0",
	}).Result()
	if err := want("entries claimed", len(claimed), 0, err); err != nil {
		return err
	}
	if err := expect("XAUTOCLAIM's entries that are gone", gone, s.ids[:10], nil); err != nil {
		return err
	}
	return s.pending(ctx, redis.XPending{Consumers: map[string]int64{}})
}

// reconnect has the proxy killed while the consumers wait.
func (s *streamTest) reconnect(ctx context.Context) error {
	if err := restarted("kill"); err != nil {
		return err
	}
	for i := range produced / 4 {
		name := fmt.Sprint("again", i)
		if err := untilItWorks(func() error { _, err := s.add(ctx, s.keys[i%streamed], name); return err }); err != nil {
			return fmt.Errorf("XADD: %w", err)
		}
	}
	return s.ledger.await(produced + produced/4)
}
