package harness

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// ReadyTimeout is how long a process may take to be ready, on a machine busy with other tests.
const ReadyTimeout = 30 * time.Second

// PollInterval is the time between two looks at a condition.
const PollInterval = 10 * time.Millisecond

// Eventually polls a condition until it holds. The test fails when the condition does not hold
// within the time given; each of why then returns what it saw last.
func Eventually(t testing.TB, within time.Duration, what string, holds func() bool, why ...func() string) {
	t.Helper()
	for deadline := time.Now().Add(within); !holds(); time.Sleep(PollInterval) {
		if time.Now().After(deadline) {
			last := ""
			for _, f := range why {
				last += "; last: " + f()
			}
			t.Fatalf("waited %v in vain: %s%s", within, what, last)
		}
	}
}

// SleepUpTo sleeps for a random time below d: the length of a simulated fault.
func SleepUpTo(d time.Duration, rng *rand.Rand) { time.Sleep(time.Duration(rng.Int64N(int64(d)))) }

// AwaitLevel waits until a proxy and all nodes behind it speak the cluster's protocol level, with commands on
// collections and pub/sub: they do from a second or more after their start.
func AwaitLevel(t testing.TB, proxy string) {
	t.Helper()
	w := DialWire(t, proxy)
	speaks := func(w *Wire, line string) bool {
		reply := string(w.Do(line))
		return !strings.Contains(reply, "protocol level") && !strings.HasPrefix(reply, "-TRYAGAIN")
	}
	Eventually(t, ReadyTimeout, "the cluster speaks the level of collections", func() bool {
		for i := range 64 { // keys of all nodes
			if !speaks(w, fmt.Sprintf("LLEN %d", i)) {
				return false
			}
		}
		return true
	})
	for range 4 { // connections of all loops, each of which gets the nodes' table
		w := DialWire(t, proxy)
		Eventually(t, ReadyTimeout, "the proxy speaks the level of pub/sub", func() bool {
			return speaks(w, "PUBLISH level m")
		})
	}
}
