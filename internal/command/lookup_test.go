package command

import (
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
