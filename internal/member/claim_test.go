package member

import (
	"reflect"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// argsOf parses a request and returns what stands behind its verb.
func argsOf(t *testing.T, raw []byte) [][]byte {
	t.Helper()
	var p resp.Parser
	if p.Parse(raw) != resp.Done {
		t.Fatalf("%q is no request", raw)
	}
	return p.Args()[2:]
}

func TestClaim(t *testing.T) {
	c := Claim{1500 * time.Millisecond, SortedSet, [][]byte{[]byte("k"), []byte("k2")}}
	raw := AppendClaim(nil, &c)
	if want := "*6\r\n$6\r\nDUNLIN\r\n$5\r\nCLAIM\r\n$4\r\n1500\r\n$1\r\nz\r\n$1\r\nk\r\n$2\r\nk2\r\n"; string(raw) != want {
		t.Errorf("CLAIM is %q", raw)
	}
	if got, ok := ParseClaim(argsOf(t, raw)); !ok || !reflect.DeepEqual(got, c) {
		t.Errorf("%v is read as %v, %v", c, got, ok)
	}
	for _, bad := range [][]string{{"x", "l", "k"}, {"1", "", "k"}, {"1", "q", "k"}, {"1", "ll", "k"}} {
		if _, ok := ParseClaim([][]byte{[]byte(bad[0]), []byte(bad[1]), []byte(bad[2])}); ok {
			t.Errorf("%q is read as a claim", bad)
		}
	}
	p := Pass{List, 12, []byte("k")}
	raw = AppendPass(nil, p)
	if want := "*5\r\n$6\r\nDUNLIN\r\n$4\r\nPASS\r\n$1\r\nl\r\n$2\r\n12\r\n$1\r\nk\r\n"; string(raw) != want {
		t.Errorf("PASS is %q", raw)
	}
	if got, ok := ParsePass(argsOf(t, raw)); !ok || !reflect.DeepEqual(got, p) {
		t.Errorf("%v is read as %v, %v", p, got, ok)
	}
	ready := AppendReady(nil, Ready{1, 12})
	if string(ready) != "*2\r\n:1\r\n:12\r\n" {
		t.Errorf("READY is %q", ready)
	}
	if got, ok := ParseReady(ready, 2); !ok || got != (Ready{1, 12}) {
		t.Errorf("READY is read as %v, %v", got, ok)
	}
	for _, bad := range []string{"*-1\r\n", "_\r\n", "-ERR x\r\n", "*1\r\n:1\r\n", "*2\r\n:2\r\n:1\r\n", "*2\r\n:-1\r\n:1\r\n", "*2\r\n:1\r\n+x\r\n"} {
		if _, ok := ParseReady([]byte(bad), 2); ok {
			t.Errorf("%q is read as READY", bad)
		}
	}
}
