package figures

import (
	"fmt"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// TestKeyFigures checks that the lists of several nodes become one list of bounded length, the
// largest figure first.
func TestKeyFigures(t *testing.T) {
	var all KeyFigures
	for node := range 3 {
		var list []KeyFigure
		for i := range 20 {
			list = append(list, KeyFigure{Key: fmt.Sprintf("%d-%d", node, i), N: int64(100*i + node)})
		}
		list = append(list, KeyFigure{Key: "moving", N: int64(5000 + node)}, KeyFigure{"moving", 15, int64(4000 + node)})
		if !all.Decode(EncodeKeyFigures(nil, list)) {
			t.Fatal("what was encoded is malformed")
		}
	}
	top := all.Top()
	if len(top) != maxKeyFigures || top[0] != (KeyFigure{"moving", 0, 5002}) ||
		top[1] != (KeyFigure{"moving", 15, 4002}) || top[2] != (KeyFigure{"2-19", 0, 1902}) {
		t.Errorf("the top is %v", top)
	}
	for _, broken := range []string{"+OK\r\n", "*1\r\n$1\r\na\r\n", "*2\r\n:1\r\n:2\r\n", "*2\r\n$1\r\na\r\n$1\r\n1\r\n",
		"*1\r\n:1\r\n", "*3\r\n:16\r\n$1\r\na\r\n:1\r\n", "*3\r\n:-1\r\n$1\r\na\r\n:1\r\n"} {
		if all.Decode([]byte(broken)) {
			t.Errorf("%q is taken for a list", broken)
		}
	}
	got := string(AppendKeyFigures(nil, resp.RESP3, BytesOfKey, top[1:2]))
	if want := "*1\r\n%3\r\n$3\r\nkey\r\n$6\r\nmoving\r\n$2\r\ndb\r\n:15\r\n$5\r\nbytes\r\n:4002\r\n"; got != want {
		t.Errorf("the reply is %q, want %q", got, want)
	}
}
