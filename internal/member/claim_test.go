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
	c := Claim{Waited: 1500 * time.Millisecond, Kind: SortedSet, Keys: [][]byte{[]byte("k"), []byte("k2")}}
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
	p := Pass{Kind: List, Turn: 12, Key: []byte("k")}
	raw = AppendPass(nil, p)
	if want := "*5\r\n$6\r\nDUNLIN\r\n$4\r\nPASS\r\n$1\r\nl\r\n$2\r\n12\r\n$1\r\nk\r\n"; string(raw) != want {
		t.Errorf("PASS is %q", raw)
	}
	if got, ok := ParsePass(argsOf(t, raw)); !ok || !reflect.DeepEqual(got, p) {
		t.Errorf("%v is read as %v, %v", p, got, ok)
	}
	ready := AppendReady(nil, Ready{Key: 1, Turn: 12})
	if string(ready) != "*2\r\n:1\r\n:12\r\n" {
		t.Errorf("READY is %q", ready)
	}
	if got, ok := ParseReady(ready, 2); !ok || !reflect.DeepEqual(got, Ready{Key: 1, Turn: 12}) {
		t.Errorf("READY is read as %v, %v", got, ok)
	}
	for _, bad := range []string{"*-1\r\n", "_\r\n", "-ERR x\r\n", "*1\r\n:1\r\n", "*2\r\n:2\r\n:1\r\n", "*2\r\n:-1\r\n:1\r\n", "*2\r\n:1\r\n+x\r\n"} {
		if _, ok := ParseReady([]byte(bad), 2); ok {
			t.Errorf("%q is read as READY", bad)
		}
	}
}

func texts(all ...string) (out [][]byte) {
	for _, s := range all {
		out = append(out, []byte(s))
	}
	return out
}

// TestClaimOfStreams: claims of streams name IDs, or a group.
func TestClaimOfStreams(t *testing.T) {
	for _, f := range []struct {
		claim Claim
		want  string
	}{
		{Claim{Kind: Stream, Keys: texts("k", "l"), IDs: texts("$", "5-1")},
			"*8\r\n$6\r\nDUNLIN\r\n$5\r\nCLAIM\r\n$1\r\n0\r\n$1\r\ns\r\n$1\r\nk\r\n$1\r\nl\r\n$1\r\n$\r\n$3\r\n5-1\r\n"},
		{Claim{Kind: Group, Keys: texts("k"), Group: []byte("a b"), MinIdle: NoIdle},
			"*7\r\n$6\r\nDUNLIN\r\n$5\r\nCLAIM\r\n$1\r\n0\r\n$1\r\ng\r\n$3\r\na b\r\n$2\r\n-1\r\n$1\r\nk\r\n"},
	} {
		raw := AppendClaim(nil, &f.claim)
		if string(raw) != f.want {
			t.Errorf("CLAIM is %q", raw)
		}
		if got, ok := ParseClaim(argsOf(t, raw)); !ok || !reflect.DeepEqual(got, f.claim) {
			t.Errorf("%v is read as %v, %v", f.claim, got, ok)
		}
	}
	for _, bad := range [][]string{
		{"1", "s", "k"}, {"1", "s", "k", "l", "5"}, {"1", "g", "group"}, {"1", "g", "group", "-1"},
		{"1", "g", "group", "x", "k"}, {"1", "g", "group", "-2", "k"},
	} {
		if _, ok := ParseClaim(texts(bad...)); ok {
			t.Errorf("%q is read as a claim", bad)
		}
	}
	p := Pass{Kind: Group, Turn: 12, Key: []byte("k"), Group: []byte("g")}
	if got, ok := ParsePass(argsOf(t, AppendPass(nil, p))); !ok || !reflect.DeepEqual(got, p) {
		t.Errorf("%v is read as %v, %v", p, got, ok)
	}
	for _, bad := range [][]string{{"g", "1", "k"}, {"l", "1", "k", "g"}} {
		if _, ok := ParsePass(texts(bad...)); ok {
			t.Errorf("%q is read as PASS", bad)
		}
	}
	r := Ready{Key: 1, IDs: []byte("5-0 0-0")}
	if got, ok := ParseReady(AppendReady(nil, r), 2); !ok || !reflect.DeepEqual(got, r) {
		t.Errorf("READY is read as %v, %v", got, ok)
	}
	for _, bad := range []string{"*3\r\n:1\r\n:0\r\n:1\r\n", "*2\r\n:1\r\n:0\r\n$1\r\nx\r\n"} {
		if _, ok := ParseReady([]byte(bad), 2); ok {
			t.Errorf("%q is read as READY", bad)
		}
	}
}

// TestSettle: what was $ is an ID, and nothing else changes.
func TestSettle(t *testing.T) {
	ids := AppendSettled(AppendSettled(nil, []byte("5-0")), []byte("0-0"))
	all := texts("$", "7", "$", "+")
	if !Settle(all, ids) || !reflect.DeepEqual(all, texts("5-0", "7", "0-0", "+")) {
		t.Errorf("%q", all)
	}
	if !Settle(texts("1"), nil) || Settle(texts("$", "1"), nil) || Settle(texts("$"), ids) || Settle(texts("1"), ids) {
		t.Error("too many or too few IDs are taken")
	}
}
