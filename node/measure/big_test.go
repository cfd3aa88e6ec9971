package measure

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dunlin-cache/dunlin/node/engine"
)

// The walk rests while nothing has changed since it began, and finds what changes then.
func TestBigWalkRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := engine.New(engine.Config{MaxBytes: 64 << 20, Shards: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		var b BigWalk
		looks := 0
		ctx, stop := context.WithCancel(t.Context())
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			b.Run(ctx, e, func() int64 { looks++; return time.Now().UnixMilli() })
		}()
		set := func(key string) {
			x := e.Lock(0, time.Now().UnixMilli())
			defer x.Unlock()
			if err := x.Set([]byte(key), []byte("value"), engine.TypeString, 0); err != nil {
				t.Error(err)
			}
		}
		for _, key := range []string{"a", "b"} { // of the same length: only one is there at a time
			set(key)
			time.Sleep(3 * (bigRound + bigRest))
			synctest.Wait()
			before := looks
			time.Sleep(time.Minute)
			synctest.Wait()
			if top := b.Top(); looks != before || len(top) != 1 || top[0].Key != key {
				t.Errorf("%d looks while nothing changes; found %v, want %s", looks-before, top, key)
			}
			x := e.Lock(0, time.Now().UnixMilli())
			x.Delete([]byte(key))
			x.Unlock()
		}
		stop()
		<-stopped
	})
}
