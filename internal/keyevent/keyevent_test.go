package keyevent

import "testing"

// TestClasses: texts are written as redis-server 7.0.15 does, but for the last one.
func TestClasses(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		c, ok := Parse(text)
		if got := c.String(); !ok || got != want {
			t.Errorf("%q is written as %q, %v, want %q", text, got, ok, want)
		}
	}
	f("", "")
	f("KEA", "AKE")
	f("KEgAm", "AKEm")
	f("KEzn", "znKE")
	f("mn", "nm")
	f("g$lshzxetdK", "AK")
	f("Ex", "xE")
	f("KAn", "AnK")
	if _, ok := Parse("Ky"); ok {
		t.Error("y is a class")
	}
	for text, want := range map[string]Class{"": 0, "g$m": 0, "K$": Keyspace | String, "Exx": Keyevent | Expired} {
		if c, _ := Parse(text); c.Active() != want {
			t.Errorf("of %q, %b is active", text, c.Active())
		}
	}
}

func TestChannels(t *testing.T) {
	for name, want := range map[string]bool{
		string(AppendKeyspace(nil, []byte("k"))): true, string(AppendKeyevent(nil, "del")): true,
		"__keyspace@1__:k": false, "__keyevent": false, "k": false, "": false,
	} {
		if IsChannel([]byte(name)) != want {
			t.Errorf("%s is a channel of notifications: %v", name, !want)
		}
	}
}
