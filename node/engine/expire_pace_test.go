package engine

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// TestKeepSwept: what expires is gone a round later, and its memory with it; what does not expire
// stays.
func TestKeepSwept(t *testing.T) {
	const keys, ttl = 20_000, 3 * time.Second
	synctest.Test(t, func(t *testing.T) {
		e := open(t, Config{MaxBytes: 64 << 20, Shards: 16})
		empty := e.Used()
		now := func() int64 { return time.Now().UnixMilli() }
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			e.KeepSwept(stop, now)
		}()
		for i := range keys + 1 {
			at := now() + ttl.Milliseconds() + int64(i%1000)
			if i == keys {
				at = now() + time.Hour.Milliseconds()
			}
			with(e, uint16(i%Partitions), now(), func(x Txn) {
				if err := x.Set([]byte(fmt.Sprint(i)), make([]byte, 200), TypeString, at); err != nil {
					t.Error(err)
				}
			})
		}
		full := e.Used()
		time.Sleep(ttl - sweepTick)
		if st := e.Stats(); st.Keys != keys+1 {
			t.Errorf("%d keys are left before their time", st.Keys)
		}
		time.Sleep(time.Second + sweepRound + 2*sweepTick)
		if st := e.Stats(); st.Keys != 1 || st.Expired != keys || st.Used-empty > (full-empty)/2 {
			t.Errorf("a round later: %+v, %d bytes were used", st, full)
		}
		close(stop)
		<-stopped
		e.checkSums(t)
	})
}
