package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redis/redis_rate/v10"
	"github.com/go-redsync/redsync/v4"
	redsyncpool "github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

func redsyncSteps(addr string) []step {
	locks := redsync.New(redsyncpool.NewPool(redis.NewClient(&redis.Options{Addr: addr})))
	lock := func(ctx context.Context) error {
		first := locks.NewMutex("redsync:lock", redsync.WithExpiry(ttl))
		second := locks.NewMutex("redsync:lock", redsync.WithTries(1))
		if err := first.LockContext(ctx); err != nil {
			return fmt.Errorf("lock: %w", err)
		}
		var taken *redsync.ErrTaken
		if err := second.LockContext(ctx); !errors.As(err, &taken) {
			return fmt.Errorf("lock by another: %w", err)
		}
		extended, err := first.ExtendContext(ctx)
		if err := want("extend", extended, true, err); err != nil {
			return err
		}
		if unlocked, err := second.UnlockContext(ctx); unlocked {
			return fmt.Errorf("unlock by another: %w", err)
		}
		unlocked, err := first.UnlockContext(ctx)
		return want("unlock", unlocked, true, err)
	}
	return append([]step{{"lock", lock}}, lockFaults(func(ctx context.Context, i int, enter func()) error {
		m := locks.NewMutex(fmt.Sprint("redsync:again", i), redsync.WithExpiry(lockTTL), redsync.WithTries(lockTries),
			redsync.WithRetryDelay(lockDelay))
		if err := m.LockContext(ctx); err != nil {
			return fmt.Errorf("lock: %w", err)
		}
		enter()
		unlocked, err := m.UnlockContext(ctx)
		return want("unlock", unlocked, true, err)
	})...)
}

func redislockSteps(addr string) []step {
	locks := redislock.New(redis.NewClient(&redis.Options{Addr: addr}))
	lock := func(ctx context.Context) error {
		first, err := locks.Obtain(ctx, "redislock:lock", ttl, &redislock.Options{Metadata: "mine"})
		if err != nil {
			return fmt.Errorf("obtain: %w", err)
		}
		if _, err := locks.Obtain(ctx, "redislock:lock", ttl, nil); !errors.Is(err, redislock.ErrNotObtained) {
			return fmt.Errorf("obtain by another: %w", err)
		}
		if err := first.Refresh(ctx, 2*ttl, nil); err != nil {
			return fmt.Errorf("refresh: %w", err)
		}
		left, err := first.TTL(ctx)
		if err := want("TTL", left > ttl, true, err); err != nil {
			return err
		}
		if err := first.Release(ctx); err != nil {
			return fmt.Errorf("release: %w", err)
		}
		if err := first.Release(ctx); !errors.Is(err, redislock.ErrLockNotHeld) {
			return fmt.Errorf("release again: %w", err)
		}
		return nil
	}
	return append([]step{{"lock", lock}}, lockFaults(func(ctx context.Context, i int, enter func()) error {
		l, err := locks.Obtain(ctx, fmt.Sprint("redislock:again", i), lockTTL, &redislock.Options{
			RetryStrategy: redislock.LimitRetry(redislock.LinearBackoff(lockDelay), lockTries),
		})
		if err != nil {
			return fmt.Errorf("obtain: %w", err)
		}
		enter()
		return l.Release(ctx)
	})...)
}

func redisRateSteps(addr string) []step {
	limiter := redis_rate.NewLimiter(redis.NewClient(&redis.Options{Addr: addr}))
	limit := func(ctx context.Context) error {
		for i := range 12 {
			r, err := limiter.Allow(ctx, "client", redis_rate.PerHour(10))
			allowed := 0
			if i < 10 {
				allowed = 1
			}
			if err != nil {
				return err
			}
			if err := want(fmt.Sprint("request ", i+1), r.Allowed, allowed, nil); err != nil {
				return err
			}
		}
		if err := limiter.Reset(ctx, "client"); err != nil {
			return fmt.Errorf("reset: %w", err)
		}
		r, err := limiter.AllowAtMost(ctx, "client", redis_rate.PerHour(10), 25)
		if err != nil {
			return err
		}
		return want("at most 25", r.Allowed, 10, nil)
	}
	// No request comes back in the test, so what is left falls with each one.
	many := redis_rate.Limit{Rate: 1, Burst: 100_000, Period: time.Hour}
	return append([]step{{"rate-limit", limit}}, countFaults(func(ctx context.Context, i int) (int, error) {
		r, err := limiter.Allow(ctx, fmt.Sprint("again", i), many)
		if err != nil {
			return 0, err
		}
		return r.Remaining, want("allowed", r.Allowed, 1, nil)
	})...)
}

const (
	lockTTL   = 5 * time.Second
	lockTries = 5_000
	lockDelay = 5 * time.Millisecond

	asynqWorkers = 4

	// A node dies, and two proxies restart. By each of these, tasks of all workers may run twice,
	// or wait for their lease to end.
	asynqFaults = 3
)

// quiet is asynq's logger.
type quiet struct{}

func (quiet) Debug(...any) {}
func (quiet) Info(...any)  {}
func (quiet) Warn(...any)  {}
func (quiet) Error(...any) {}
func (quiet) Fatal(...any) {}

// tasks counts how often each task was begun. One of ten fails the first time.
type tasks struct {
	mu    sync.Mutex
	begun map[string]int
	done  atomic.Int64
}

func (t *tasks) ProcessTask(_ context.Context, task *asynq.Task) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	name := string(task.Payload())
	if t.begun[name]++; t.begun[name] == 1 && name[len(name)-1] == '7' {
		return errors.New("once more")
	}
	t.done.Add(1)
	return nil
}

func (t *tasks) await(n int64) error {
	for deadline := time.Now().Add(workTimeout); t.done.Load() < n; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("%d of %d tasks are done", t.done.Load(), n)
		}
	}
	return want("tasks done", t.done.Load(), n, nil)
}

func crashQueue(i int) string { return fmt.Sprint("crash", i%spread) }

// crash adds tasks to several queues while a node is killed, and counts those that are lost and
// that run twice.
func (t *tasks) crash(ctx context.Context, client *asynq.Client, inspector *asynq.Inspector) error {
	added := map[string]time.Time{} // when each was acknowledged
	n := 0
	killed, refused, err := whileCrashed(func() error {
		name := fmt.Sprint("crash", n, "-")
		n++
		_, err := client.EnqueueContext(ctx, asynq.NewTask("t", []byte(name)), asynq.Queue(crashQueue(n)))
		if err == nil {
			added[name] = time.Now()
		}
		return err
	})
	if err != nil {
		return err
	}
	// A worker has these if the reply that gave them to it was lost. asynq finds them a minute or
	// two later, when their lease has ended.
	held := func() (map[string]bool, error) {
		names := map[string]bool{}
		for i := range spread {
			active, err := inspector.ListActiveTasks(crashQueue(i), asynq.PageSize(1000))
			if err != nil && !errors.Is(err, asynq.ErrQueueNotFound) { // it has had no task
				return nil, err
			}
			for _, task := range active {
				names[string(task.Payload)] = true
			}
		}
		return names, nil
	}
	var lost []time.Time
	twice, waiting := 0, 0
	err = untilItWorksFor(workTimeout, func() error {
		kept, err := held()
		if err != nil {
			return err
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		lost, twice, waiting = nil, 0, 0
		for name, at := range added {
			switch times := t.begun[name]; {
			case times > 1:
				twice++
			case times == 0 && kept[name]:
				waiting++
			case times == 0:
				lost = append(lost, at)
			}
		}
		return want("tasks lost, but not in the last moments", outside(lost, killed), 0, nil)
	})
	fmt.Printf("count %d tasks: %d refused, %d lost, %d twice, %d wait for the end of a lease\n",
		n, refused, len(lost), twice, waiting)
	if most := asynqFaults * asynqWorkers; twice > most || waiting > most {
		err = errors.Join(err, fmt.Errorf("%d tasks have run twice, and %d wait, want at most %d", twice, waiting, most))
	}
	return err
}

func asynqSteps(addr string) []step {
	at := asynq.RedisClientOpt{Addr: addr}
	client, inspector := asynq.NewClient(at), asynq.NewInspector(at)
	work := &tasks{begun: map[string]int{}}
	queues := map[string]int{"default": 2, "other": 1}
	for i := range spread {
		queues[crashQueue(i)] = 1
	}
	server := asynq.NewServer(at, asynq.Config{
		Concurrency: asynqWorkers, Queues: queues, Logger: quiet{},
		RetryDelayFunc:           func(int, error, *asynq.Task) time.Duration { return 0 },
		TaskCheckInterval:        50 * time.Millisecond,
		DelayedTaskCheckInterval: 100 * time.Millisecond,
	})
	enqueue := func(ctx context.Context, from, to int, options ...asynq.Option) error {
		for i := from; i < to; i++ {
			if _, err := client.EnqueueContext(ctx, asynq.NewTask("t", fmt.Append(nil, i)), options...); err != nil {
				return err
			}
		}
		return nil
	}
	queue := func(ctx context.Context) error {
		task := asynq.NewTask("t", []byte("unique"))
		if _, err := client.EnqueueContext(ctx, task, asynq.Unique(ttl)); err != nil {
			return err
		}
		if _, err := client.EnqueueContext(ctx, task, asynq.Unique(ttl)); !errors.Is(err, asynq.ErrDuplicateTask) {
			return fmt.Errorf("a task that is there: %w", err)
		}
		if err := enqueue(ctx, 0, 50); err != nil {
			return err
		}
		if err := enqueue(ctx, 50, 70, asynq.Queue("other"), asynq.ProcessIn(time.Second), asynq.Retention(ttl)); err != nil {
			return err
		}
		info, err := inspector.GetQueueInfo("default")
		if err != nil {
			return err
		}
		if err := want("pending", info.Pending, 51, nil); err != nil {
			return err
		}
		if err := server.Start(work); err != nil {
			return err
		}
		return work.await(71)
	}
	inspect := func(context.Context) error {
		for deadline := time.Now().Add(reconnectTimeout); ; time.Sleep(10 * time.Millisecond) {
			info, err := inspector.GetQueueInfo("other")
			if err == nil && info.Completed == 20 && info.Pending+info.Active+info.Scheduled+info.Retry == 0 {
				break
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("the queue has %+v, %w", info, err)
			}
		}
		n, err := inspector.DeleteAllCompletedTasks("other")
		return want("deleted", n, 20, err)
	}
	replace := func(ctx context.Context) error {
		before, n := work.done.Load(), 0
		err := whileReplaced(func() error { n++; return enqueue(ctx, 1000+n, 1000+n+1) })
		if err != nil {
			return err
		}
		return work.await(before + int64(n))
	}
	crash := func(ctx context.Context) error { return work.crash(ctx, client, inspector) }
	stop := func(context.Context) error {
		server.Shutdown()
		return errors.Join(client.Close(), inspector.Close())
	}
	return []step{{"queue", queue}, {"inspect", inspect}, {"replace", replace}, {"crash", crash}, {"stop", stop}}
}
