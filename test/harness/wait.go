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

// AwaitLevel waits until all nodes behind a proxy serve commands on collections: a cluster speaks
// their protocol level from a second or more after its start.
func AwaitLevel(t testing.TB, proxy string) {
	t.Helper()
	w := DialWire(t, proxy)
	holds := func() bool {
		for i := range 64 { // keys of all nodes
			reply := string(w.Do(fmt.Sprintf("LLEN %d", i)))
			if strings.Contains(reply, "protocol level") || strings.HasPrefix(reply, "-TRYAGAIN") {
				return false
			}
		}
		return true
	}
	Eventually(t, ReadyTimeout, "the cluster speaks the level of collections", holds)
}
