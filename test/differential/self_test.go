package differential

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/test/harness"
)

// TestDifferentialNotices checks that each kind of wrong answer counts as a difference.
func TestDifferentialNotices(t *testing.T) {
	t.Parallel()
	right := func(args string) (reply string, closes bool) {
		switch {
		case strings.HasPrefix(args, "[ECHO "):
			return fmt.Sprintf("$%d\r\n%s\r\n", len(args)-len("[ECHO ]"), args[len("[ECHO "):len(args)-1]), false
		case args == "[QUIT]":
			return "+OK\r\n", true
		case args == "malformed":
			return "-ERR Protocol error: invalid bulk length\r\n", true
		}
		return "+" + args + "\r\n", false
	}
	f := func(what, in string, differs bool, answer func(args string) (string, bool)) {
		t.Helper()
		differences := 0
		d := &differential{
			report: func(string, ...any) { differences++ },
			rng:    rand.New(rand.NewPCG(1, 1)),
			targets: []*target{
				{name: "right", addr: harness.ServeLines(t, right)},
				{name: "other", addr: harness.ServeLines(t, answer), patience: 10 * time.Second},
			},
		}
		defer d.hangUp()
		if what == "still open" {
			d.targets[1].patience = 200 * time.Millisecond
		}
		foreseen := foresee([]byte(in))
		d.compare(batch{bytes: []byte(in), inputs: 1, end: foreseen.end})
		if (differences > 0) != differs {
			t.Errorf("%s: %d differences, want some: %v", what, differences, differs)
		}
	}
	// but is right with one answer changed.
	but := func(args, reply string, closes bool) func(string) (string, bool) {
		return func(got string) (string, bool) {
			if got == args {
				return reply, closes
			}
			return right(got)
		}
	}
	const in, broken = "GET a\r\nGET b\r\n", "GET a\r\n*1\r\n$x\r\n"
	f("the same", in, false, right)
	f("the same error", broken, false, right)
	f("the same end", "QUIT\r\n", false, right)
	f("swapped", in, true, func(args string) (string, bool) {
		return right(strings.NewReplacer("GET a", "GET b", "GET b", "GET a").Replace(args))
	})
	f("missing", in, true, but("[GET b]", "", false))
	f("surplus", in, true, but("[GET b]", "+[GET b]\r\n+[GET b]\r\n", false))
	f("other bytes", in, true, but("[GET b]", "+[GET  b]\r\n", false))
	f("closed", in, true, but("[GET b]", "+[GET b]\r\n", true))
	f("other error", broken, true, but("malformed", "-ERR Protocol error\r\n", true))
	f("no error", broken, true, but("malformed", "", true))
	f("still open", broken, true, but("malformed", "-ERR Protocol error: invalid bulk length\r\n", false))
}
