package replica

import (
	"bytes"
	"fmt"
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
	var got Answer // used again for each
	lacks := AppendLack(AppendLack(AppendLack(nil, 7, []byte("key")), 7, []byte("other")), 7, []byte("key"))
	for _, lacks := range [][]byte{nil, lacks, AppendLack(nil, 4095, nil), AppendLack(nil, 65535, nil)} {
		for _, refused := range [][]uint16{nil, {0}, {7, 4095}} {
			for _, strained := range []bool{false, true} {
				want := Answer{12, refused, lacks, strained}
				b := want.Append(nil)
				err := got.Parse(b)
				same := got.Seq == 12 && slices.Equal(got.Refused, refused) && bytes.Equal(got.Lacks, lacks) && got.Strained == strained
				if err != nil || !same {
					t.Errorf("%q is %v, %v", b, got, err)
				}
			}
		}
	}
	var keys []string
	for len(lacks) > 0 {
		var p uint16
		var key []byte
		p, key, lacks = NextLack(lacks)
		keys = append(keys, fmt.Sprint(p, " ", string(key)))
	}
	if want := []string{"7 key", "7 other"}; !slices.Equal(keys, want) {
		t.Errorf("%q are lacking, want %q", keys, want)
	}
	for i := range 10_000 {
		if lacks = AppendLack(lacks, 1, fmt.Append(nil, i)); len(lacks) > LacksMost {
			t.Fatalf("%d bytes of keys", len(lacks))
		}
	}
	for _, bad := range []string{"-ERR no\r\n", ":x\r\n", "+OK\r\n", "*2\r\n:1\r\n$1\r\nx\r\n", "*2\r\n:1\r\n:2\r\n", "*1\r\n:1\r\n",
		"*3\r\n:1\r\n$0\r\n\r\n", "*3\r\n:1\r\n$0\r\n\r\n$3\r\nabc\r\n", "*3\r\n:1\r\n$0\r\n\r\n$5\r\n\x01\x00\x02\x00a\r\n",
		"*2\r\n:1\r\n$0\r\n\r\n$0\r\n\r\n",
		"*4\r\n:1\r\n$0\r\n\r\n$0\r\n\r\n", "*4\r\n:1\r\n$0\r\n\r\n$0\r\n\r\n$1\r\n2\r\n"} {
		if err := got.Parse([]byte(bad)); err == nil {
			t.Errorf("%q is an answer", bad)
		}
	}
}
