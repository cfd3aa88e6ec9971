package ring

import (
	"bytes"
	"testing"
)

func TestCRC16(t *testing.T) {
	check := func(in string, want uint16) {
		t.Helper()
		if got := crc16([]byte(in)); got != want {
			t.Errorf("crc16(%q) = %#04x, want %#04x", in, got, want)
		}
	}
	check("", 0)
	check("123456789", 0x31c3) // the standard's check value
	check("A", 0x58e5)
}

func TestSlot(t *testing.T) {
	check := func(key string, want uint16) {
		t.Helper()
		if got := Slot([]byte(key)); got != want {
			t.Errorf("Slot(%q) = %d, want %d", key, got, want)
		}
		if got := PartitionOf([]byte(key)); got != want/4 {
			t.Errorf("PartitionOf(%q) = %d, want %d", key, got, want/4)
		}
	}
	// As answered by Redis's CLUSTER KEYSLOT.
	check("", 0)
	check("foo", 12182)
	check("bar", 5061)
	check("hello", 866)
	check("somekey", 11058)
	check("123456789", 12739)
	// Only the tag counts, and only the first one.
	check("{foo}", 12182)
	check("a{foo}b", 12182)
	check("a{foo}{bar}", 12182)
	check("foo{bar}}", 5061)
	check("{{foo}", 13308)
	check("x{{foo}y", 13308)
	// No tag: the whole key counts.
	check("foo{}", 5542)
	check("foo{}{bar}", 8363)
	check("foo{bar", slotSlowly([]byte("foo{bar")))
	check("foo}bar{", slotSlowly([]byte("foo}bar{")))
}

// crc16Slowly is the definition: divide by the polynomial, bit by bit.
func crc16Slowly(p []byte) (crc uint16) {
	for _, b := range p {
		for bit := 7; bit >= 0; bit-- {
			top := crc>>15 ^ uint16(b>>bit)&1
			crc = crc<<1 ^ top*0x1021
		}
	}
	return crc
}

func slotSlowly(key []byte) uint16 {
	if _, after, found := bytes.Cut(key, []byte("{")); found {
		if tag, _, closed := bytes.Cut(after, []byte("}")); closed && len(tag) > 0 {
			key = tag
		}
	}
	return crc16Slowly(key) % Slots
}

func FuzzSlot(f *testing.F) {
	for _, seed := range []string{"", "a", "foo{bar}baz", "{}x{y}", "{{a}}", "}{", "0123456789abcdef0123456789abcdef"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, key []byte) {
		if got, want := Slot(key), slotSlowly(key); got != want {
			t.Errorf("Slot(%q) = %d, want %d", key, got, want)
		}
		if got, want := crc16(key), crc16Slowly(key); got != want {
			t.Errorf("crc16(%q) = %d, want %d", key, got, want)
		}
	})
}

func TestSlotDoesNotAllocate(t *testing.T) {
	key := []byte("user:{1234}:profile")
	if n := testing.AllocsPerRun(100, func() { Slot(key) }); n != 0 {
		t.Errorf("Slot allocates %v times", n)
	}
}
