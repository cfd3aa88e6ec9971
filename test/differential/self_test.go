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

// TestScansWithZeros checks that ZSCAN's replies are compared by what scores are, and not by how they
// are written.
func TestScansWithZeros(t *testing.T) {
	t.Parallel()
	scan := func(score string) reply {
		r, _ := decode(fmt.Appendf(nil, "*2\r\n$1\r\n0\r\n*2\r\n$1\r\nm\r\n$%d\r\n%s\r\n", len(score), score))
		return r
	}
	args := []string{"ZSCAN", "z", "0"}
	for _, pair := range [][2]string{{"0", "-0"}, {"0.1", "0.10000000000000001"}, {"1e+21", "1e21"}} {
		if !sameReply(args, scan(pair[0]), scan(pair[1]), false) {
			t.Errorf("the scores %s and %s count as different", pair[0], pair[1])
		}
	}
	if sameReply(args, scan("0"), scan("5e-324"), false) {
		t.Error("the scores 0 and 5e-324 count as equal")
	}
}

// TestSortsWithoutOrder checks which replies to SORT of a set are compared in any order.
func TestSortsWithoutOrder(t *testing.T) {
	t.Parallel()
	one, _ := decode([]byte("*2\r\n$1\r\na\r\n$1\r\nb\r\n"))
	other, _ := decode([]byte("*2\r\n$1\r\nb\r\n$1\r\na\r\n"))
	for command, want := range map[string]bool{
		"SORT qset BY nosort": true, "SORT qset ALPHA BY w*": true, "SORT qset by w* alpha": true,
		"SORT qset BY w*": false, "SORT qset ALPHA": false, "SORT qlist ALPHA BY w*": false,
	} {
		if got := sameReply(strings.Fields(command), one, other, false); got != want {
			t.Errorf("%s: replies in another order count as the same: %t", command, got)
		}
	}
}
