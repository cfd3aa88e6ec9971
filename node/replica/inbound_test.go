package replica

import (
	"slices"
	"testing"
)

func TestInbound(t *testing.T) {
	var in Inbound
	if last, resumed := in.Open(9); last != 0 || resumed {
		t.Errorf("the first generation is opened at %d, resumed %t", last, resumed)
	}
	if got := in.Judge(2); got != Gap {
		t.Errorf("batch 2 before 1 is judged %d", got)
	}
	if got := in.Judge(1); got != Next {
		t.Errorf("batch 1 is judged %d", got)
	}
	in.Applied()
	if got := in.Judge(1); got != Repeated {
		t.Errorf("batch 1 again is judged %d", got)
	}
	if last, resumed := in.Open(9); last != 1 || !resumed {
		t.Errorf("the same generation is opened at %d, resumed %t", last, resumed)
	}
	if last, resumed := in.Open(10); last != 0 || resumed {
		t.Errorf("a new generation is opened at %d, resumed %t", last, resumed)
	}
}

// A refusal is said once, and again on every new connection until what it is about is taken.
func TestRefusals(t *testing.T) {
	var r Refusals
	tell := func(want ...uint16) {
		t.Helper()
		if got := r.Tell(nil); !slices.Equal(got, want) {
			t.Errorf("the sender is told %v, want %v", got, want)
		}
	}
	tell()
	r.Refuse(7)
	r.Refuse(4095)
	tell(7, 4095)
	tell()
	r.Reopened()
	tell(7, 4095)
	r.Accept(7)
	r.Reopened()
	tell(4095)
	r.Refuse(5)
	r.Void()
	r.Reopened()
	tell()
}

func TestAnswer(t *testing.T) {
	for _, refused := range [][]uint16{nil, {0}, {7, 4095}} {
		b := AppendAnswer(nil, 12, refused)
		seq, got, err := ParseAnswer(b, nil)
		if err != nil || seq != 12 || !slices.Equal(got, refused) {
			t.Errorf("%q is %d %v, %v", b, seq, got, err)
		}
	}
	for _, bad := range []string{"-ERR no\r\n", ":x\r\n", "+OK\r\n", "*2\r\n:1\r\n$1\r\nx\r\n", "*2\r\n:1\r\n:2\r\n", "*1\r\n:1\r\n"} {
		if _, _, err := ParseAnswer([]byte(bad), nil); err == nil {
			t.Errorf("%q is an answer", bad)
		}
	}
}
