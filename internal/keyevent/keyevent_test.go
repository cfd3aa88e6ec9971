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
	for _, database := range []uint8{0, 1, 9, 10, 15} {
		names := [][]byte{AppendKeyspace(nil, database, []byte("k__:")), AppendKeyevent(nil, database, "del")}
		for _, name := range names {
			if got, ok := Channel(name); !ok || got != database {
				t.Errorf("%s is a channel of database %d, %v, want %d", name, got, ok, database)
			}
		}
	}
	if got := string(AppendKeyspace(nil, 12, []byte("k"))); got != "__keyspace@12__:k" {
		t.Errorf("the channel of a key is %s", got)
	}
	for _, name := range []string{
		"__keyspace@16__:k", "__keyspace@01__:k", "__keyspace@__:k", "__keyspace@x__:k", "__keyspace@1_:k",
		"__keyspace@256__:k", "__keyspace@-1__:k", "__keyspace@1", "__keyevent", "x__keyevent@0__:del", "k", "",
	} {
		if IsChannel([]byte(name)) {
			t.Errorf("%s is a channel of notifications", name)
		}
	}
}
