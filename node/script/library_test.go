package script

import (
	"fmt"
	"testing"
)

// TestLibrary: a Library forgets what was not used for longest, and gives back what it has charged.
func TestLibrary(t *testing.T) {
	charged, limit := int64(0), int64(1<<40)
	charge := func(n int64) bool {
		if charged+n > limit {
			return false
		}
		charged += n
		return true
	}
	add := func(l *Library, body string) (*Script, bool) {
		t.Helper()
		s, err := Compile(body)
		if err != nil {
			t.Fatal(err)
		}
		return s, l.Add(s)
	}
	const few = 10
	cost := CompileCost(len("return 100"))
	l := NewLibrary(few*cost, charge, func(n int64) { charged -= n })
	first, _ := add(l, "return 100")
	for i := range 2 * few {
		if _, ok := add(l, fmt.Sprintf("return %d", 101+i)); !ok {
			t.Fatal("a script does not find room")
		}
		if l.Get([]byte(first.SHA)) != first || l.Find([]byte(first.Body)) != first {
			t.Fatal("what was just used is forgotten")
		}
	}
	if s := l.Stats(); s.Scripts != few || s.Bytes != charged || charged != few*cost || s.Evicted != few+1 {
		t.Errorf("%d scripts take %d bytes, of which %d are charged; %d are evicted",
			s.Scripts, s.Bytes, charged, s.Evicted)
	}
	if l.Find([]byte("return 101")) != nil {
		t.Error("what was not used for longest is there")
	}
	second, _ := add(l, "return 200")
	for i := range few - 1 {
		add(l, fmt.Sprintf("return %d", 201+i))
	}
	names := [][]byte{[]byte(second.SHA), []byte("x"), []byte(first.SHA)}
	if got := string(l.AppendHas(nil, names)); got != ":1\r\n:0\r\n:0\r\n" {
		t.Errorf("AppendHas says %q", got)
	}
	if add(l, "return 300"); l.Find([]byte(second.Body)) != nil {
		t.Error("to ask whether a script is known is a use of it")
	}
	l.Flush()
	if l.Get([]byte(first.SHA)) != nil || charged != 0 {
		t.Errorf("behind Flush %d bytes are charged", charged)
	}
	limit = 0
	if _, ok := add(l, "return 1"); ok {
		t.Error("a script is kept without memory")
	}
}
