package engine

import "testing"

// The longest string has a length that the header's bits just do not reach, in any database.
func TestHeaderLengths(t *testing.T) {
	headerLengths(t, 4095)
	headerLengths(t, Section(4095, 1))
}

func headerLengths(t *testing.T, section uint16) {
	name := MaxKeyLen
	if section >= Partitions {
		name--
	}
	e := open(t, Config{MaxBytes: 8 << 20, Shards: 1})
	for _, typ := range []Type{TypeString, TypeHash, TypeStream} {
		for _, n := range []int{0, 1, 300, 1 << 20, MaxValueLen - 1, MaxValueLen} {
			if n == MaxValueLen && typ != TypeString {
				continue
			}
			h := e.makeHeader(typ, section, name, n, true) | usesMask
			for _, then := range []int{7, MaxValueLen - 1, n} {
				got := e.withValueLen(e.withValueLen(h, then), n)
				if got != h || got.typ() != typ || got.valueLen() != n || got.keyLen() != MaxKeyLen || got.nameLen() != name || got.partition() != 4095 || got.uses() != maxUses || got.hasDatabase() != (section >= Partitions) {
					t.Errorf("type %d of %d bytes, then %d: %x, want %x", typ, n, then, got, h)
				}
			}
		}
	}
}

// A string of MaxValueLen bytes is stored, found, pinned and shortened like any other.
func TestLongestString(t *testing.T) {
	longestString(t, 3)
	longestString(t, Section(3, 1))
}

func longestString(t *testing.T, section uint16) {
	e := open(t, Config{MaxBytes: 1 << 30, Shards: 1})
	key := []byte("longest")
	st, err := e.Stage(section, key, MaxValueLen)
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Skip(MaxValueLen - 1); err != nil {
		t.Fatal(err)
	}
	if err := st.Write([]byte{7}); err != nil {
		t.Fatal(err)
	}
	x := e.Lock(section, 1)
	defer x.Unlock()
	if err := x.SetStaged(&st, TypeHash, 0); err != ErrValueTooLarge {
		t.Errorf("as a hash: %v", err)
	}
	if err := x.SetStaged(&st, TypeString, 0); err != nil {
		t.Fatal(err)
	}
	item, ok := x.Find(key)
	if !ok || item.Type() != TypeString || len(item.Value()) != MaxValueLen || item.Value()[MaxValueLen-1] != 7 {
		t.Fatalf("found %t: type %d, %d bytes", ok, item.Type(), len(item.Value()))
	}
	pin, ok := x.Pin(item)
	if !ok || len(pin.Value()) != MaxValueLen || !pin.Holds(item) {
		t.Errorf("pinned %t", ok)
	}
	pin.Release()
	if view, err := x.Resize(key, 100); err != nil || len(view) != 100 {
		t.Errorf("resized to %d bytes: %v", len(view), err)
	}
	if item, ok = x.Find(key); !ok || item.Type() != TypeString || len(item.Value()) != 100 {
		t.Errorf("found %t: type %d, %d bytes", ok, item.Type(), len(item.Value()))
	}
}
