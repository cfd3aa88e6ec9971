package member

import (
	"reflect"
	"testing"
)

func TestGone(t *testing.T) {
	for _, g := range []Gone{
		{All: true}, {All: true, Flushed: true}, {Hash: 1<<64 - 1}, {Hash: 7, Actor: 1 << 63}, {ByPrefix: true, Key: []byte("a\r\nb"), Actor: 1},
		{ByPrefix: true, Key: []byte{}},
	} {
		push := AppendGone(nil, g)
		if got, ok := ParseGone(push); !ok || !reflect.DeepEqual(got, g) {
			t.Errorf("%q is read as %+v, %v", push, got, ok)
		}
		if n := len(push); n > GoneSize+len(g.Key) {
			t.Errorf("%q has %d bytes", push, n)
		}
	}
	for _, bad := range []string{"", ">3\r\n+gone\r\n:x\r\n:1\r\n", ">3\r\n+gone\r\n$1\r\na\r\n:1\r\n", ">3\r\n+changed\r\n:1\r\n:1\r\n", ">2\r\n+lost\r\n:7\r\n"} {
		if got, ok := ParseGone([]byte(bad)); ok {
			t.Errorf("%q is read as %+v", bad, got)
		}
	}
	if actor, ok := ParseAs([]byte("18446744073709551615")); !ok || actor != 1<<64-1 {
		t.Errorf("actor %d, %v", actor, ok)
	}
}
