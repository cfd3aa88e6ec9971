package ring

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"
)

func settingsOf(t testing.TB, version uint64, values map[string]string) *Settings {
	t.Helper()
	s, err := (*Settings)(nil).With(version, values)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func encoded(s *Settings) []byte { return slices.Concat(slices.Collect(s.Parts())...) }

func TestSettings(t *testing.T) {
	var none *Settings
	if _, set := none.Get("a"); set || none.ID() != (SettingsID{}) || none.Has(map[string]string{"a": ""}) {
		t.Error("no document has a value")
	}
	first := settingsOf(t, 1, map[string]string{"a": "1", "b": ""})
	second, err := first.With(2, map[string]string{"a": "2"})
	if err != nil {
		t.Fatal(err)
	}
	if !first.Has(map[string]string{"a": "1", "b": ""}) || !second.Has(map[string]string{"a": "2", "b": ""}) || first.Has(map[string]string{"c": ""}) {
		t.Errorf("documents have %v and %v", first.values, second.values)
	}
	got, err := DecodeSettings(encoded(second))
	if err != nil || got.ID() != second.ID() || !got.Has(map[string]string{"a": "2", "b": ""}) || len(got.values) != 2 {
		t.Errorf("%v becomes %v, %v", second, got, err)
	}
	if first.ID().Hash == second.ID().Hash || first.ID().Version != 1 || second.ID().Version != 2 {
		t.Errorf("ids are %v and %v", first.ID(), second.ID())
	}
	if _, err := first.With(3, map[string]string{"c": strings.Repeat("x", MaxSettingsBytes)}); err == nil {
		t.Error("a document over the limit was made")
	}
	good := encoded(second)
	if !bytes.Equal(encoded(got), good) || got.Size() != len(good) || second.Size() != len(good) {
		t.Errorf("a decoded document is encoded as %q, want %q; their sizes are %d and %d",
			encoded(got), good, got.Size(), second.Size())
	}
	for what, b := range map[string][]byte{
		"nothing": nil, "its end missing": good[:len(good)-1], "a byte too many": append(bytes.Clone(good), 0),
		"another magic": append([]byte("X"), good[1:]...), "a later version": append([]byte("DLS\x02"), good[4:]...),
		"names out of order": []byte("DLS\x01\x01\x02\x01b\x00\x01a\x00"), "a name twice": []byte("DLS\x01\x01\x02\x01a\x00\x01a\x00"),
		"a number that is longer than need be": []byte("DLS\x01\x81\x00\x00"),
		"a text longer than all":               []byte("DLS\x01\x01\x01\xff\xff\x7fa"),
	} {
		if _, err := DecodeSettings(b); err == nil {
			t.Errorf("settings with %s were decoded", what)
		}
	}
	if golden := "DLS\x01\x02\x02\x01a\x012\x01b\x00"; string(good) != golden {
		t.Errorf("encoded as %q, want %q", good, golden)
	}
}

func FuzzDecodeSettings(f *testing.F) {
	f.Add(encoded(settingsOf(f, 7, map[string]string{"config/timeout": "60", "config/slowlog-max-len": ""})))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := DecodeSettings(b)
		if err != nil {
			return
		}
		if !bytes.Equal(encoded(s), b) {
			t.Fatalf("%q is encoded as %q", b, encoded(s))
		}
		again, err := DecodeSettings(encoded(s))
		if err != nil || again.ID() != settingsOf(t, s.id.Version, s.values).ID() || !again.Has(s.values) {
			t.Fatalf("decoded settings do not survive another encoding: %v", err)
		}
	})
}

// TestLibrariesOfSettings: a library of functions is removed by an empty value, other settings are not.
func TestLibrariesOfSettings(t *testing.T) {
	first, err := (*Settings)(nil).With(1, map[string]string{FunctionPrefix + "a": "1", FunctionPrefix + "b": "2", "config/x": "y"})
	if err != nil {
		t.Fatal(err)
	}
	changes := map[string]string{FunctionPrefix + "a": "", FunctionPrefix + "none": "", "config/x": ""}
	if first.Has(changes) {
		t.Error("a document has changes that it does not have")
	}
	next, err := first.With(2, changes)
	if err != nil {
		t.Fatal(err)
	}
	if !next.Has(changes) || next.Has(map[string]string{FunctionPrefix + "b": ""}) {
		t.Error("a document does not know which changes it has")
	}
	if decoded, err := DecodeSettings(encoded(next)); err != nil || decoded.ID() != next.ID() {
		t.Errorf("decoded %v, %v", decoded.ID(), err)
	}
	got := maps.Collect(next.Libraries())
	if value, set := next.Get("config/x"); len(got) != 1 || got["b"] != "2" || value != "" || !set {
		t.Errorf("libraries are %v, and x is %q", got, value)
	}
	for range (*Settings)(nil).Libraries() {
		t.Error("the empty document has a library")
	}
}

// TestLongValuesOfSettings: they are encoded as they lie in the document, and documents that have the same ones keep
// them once.
func TestLongValuesOfSettings(t *testing.T) {
	long := func(c string, more int) string { return strings.Repeat(c, sharedFrom+more) }
	x := FunctionPrefix + "x"
	first := settingsOf(t, 1, map[string]string{
		"a": "1", x: long("x", 0), FunctionPrefix + "y": long("y", 1), "z": long("z", -1),
	})
	if n := len(slices.Collect(first.Parts())); n != 5 {
		t.Errorf("there are %d parts, want two values and what is around them", n)
	}
	second, err := first.With(2, map[string]string{FunctionPrefix + "y": "", "a": "2"})
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := DecodeSettings(encoded(second))
	if err != nil || decoded.ID() != second.ID() {
		t.Fatalf("%v, %v", decoded.ID(), err)
	}
	at := func(s *Settings) *byte { return &bytesOf(s.values[x])[0] }
	if at(second) != at(first) || at(decoded) == at(first) {
		t.Error("a document must share values with the one that it was made of, and with no other")
	}
	decoded.ShareWith(first)
	decoded.ShareWith(nil)
	if at(decoded) != at(first) || !bytes.Equal(encoded(decoded), encoded(second)) {
		t.Error("a document that was decoded does not share what another one has")
	}
	if a, _ := decoded.Get("a"); a != "2" {
		t.Errorf("a value has become %q", a)
	}

	many := make(map[string]string)
	for i := range 200 {
		many[strings.Repeat("n", 1+i)] = long("v", -1)
	}
	many[x] = long("v", sharedFrom)
	for part := range settingsOf(t, 1, many).Parts() {
		if len(part) >= SharedPart && &part[0] != &bytesOf(many[x])[0] {
			t.Errorf("a part that is made anew has %d bytes", len(part))
		}
	}

	without := second.WithoutLibraries()
	if without.ID() != second.ID() || len(without.values) != 2 || len(second.values) != 3 {
		t.Errorf("without libraries there are %v", without.values)
	}
	if (*Settings)(nil).WithoutLibraries() != nil {
		t.Error("the empty document is another one without libraries")
	}
}
