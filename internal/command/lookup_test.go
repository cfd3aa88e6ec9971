package command

import (
	"bytes"
	"strings"
	"testing"
)

func TestLookup(t *testing.T) {
	f := func(name, want string) {
		t.Helper()
		got := ""
		if c := Lookup([]byte(name)); c != nil {
			got = c.Name
		}
		if got != want {
			t.Errorf("Lookup(%q) = %q, want %q", name, got, want)
		}
	}
	for _, c := range append([]*Command{ByID(Dunlin)}, All()...) {
		f(c.Name, c.Name)
		f(strings.ToUpper(c.Name), c.Name)
		f(strings.ToUpper(c.Name[:1])+c.Name[1:], c.Name)
		f(c.Name+"\x00", "")
		f(c.Name+"q", "")
		f("q"+c.Name, "")
	}
	f("", "")
	f("\x00", "")
	f("ge\xd4", "") // 'T' with its top bit set
	f("ge\x54", "get")
	f("restore\rasking", "")
	f("eval\x7fro", "")
	f(strings.Repeat("g", 24), "")
	f(strings.Repeat("g", 25), "")
}

func TestSub(t *testing.T) {
	f := func(container, name string, want ID) {
		t.Helper()
		var got ID
		if c := Lookup([]byte(container)).Sub([]byte(name)); c != nil {
			got = c.ID
		}
		if got != want {
			t.Errorf("sub %q of %q: ID %d, want %d", name, container, got, want)
		}
	}
	f("client", "ID", ClientID)
	f("client", "setName", ClientSetName)
	f("cluster", "count-failure-reports", ClusterCountFailureReports)
	f("client", "", 0)
	f("client", "id\x00", 0)
	f("client", strings.Repeat("x", 25), 0)
	f("config", "id", 0)
	f("get", "id", 0)
}

// FuzzLookup compares Lookup with a map of names in lower case.
func FuzzLookup(f *testing.F) {
	rows := map[string]*Command{"dunlin": ByID(Dunlin)}
	for _, c := range All() {
		rows[c.Name] = c
		f.Add([]byte(c.Name), uint64(0x5555))
	}
	f.Fuzz(func(t *testing.T, name []byte, upper uint64) {
		want := rows[string(asciiLower(name))]
		if got := Lookup(name); got != want {
			t.Fatalf("Lookup(%q) = %v, want %v", name, got, want)
		}
		// The same name with some letters in upper case.
		for i, ch := range name {
			if upper>>(i%64)&1 != 0 && 'a' <= ch && ch <= 'z' {
				name[i] = ch - 'a' + 'A'
			}
		}
		if got := Lookup(name); got != want {
			t.Fatalf("Lookup(%q) = %v, want %v", name, got, want)
		}
	})
}

func asciiLower(b []byte) []byte {
	out := bytes.Clone(b)
	for i, ch := range out {
		if 'A' <= ch && ch <= 'Z' {
			out[i] = ch - 'A' + 'a'
		}
	}
	return out
}
