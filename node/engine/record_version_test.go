package engine

import (
	"fmt"
	"testing"
)

// Whatever is done to a key changes its version, what is done to others does not, nor does looking
// at it.
func TestVersions(t *testing.T) {
	e := open(t, Config{MaxBytes: 64 << 20, Shards: 4})
	const p, now = 7, 1_000_000
	key, large := []byte("key"), make([]byte, 200<<10)
	version := func() Version {
		txn := e.Lock(p, now)
		defer txn.Unlock()
		return txn.VersionOf(key)
	}
	set := func(value []byte, expireAt int64) func(Txn) {
		return func(txn Txn) {
			if err := txn.Set(key, value, TypeString, expireAt); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, step := range []struct {
		name    string
		f       func(Txn)
		changes bool
	}{
		{"find nothing", func(txn Txn) { txn.Find(key) }, false},
		{"delete nothing", func(txn Txn) { txn.Delete(key) }, false},
		{"set", set([]byte("1"), 0), true},
		{"set the same", set([]byte("1"), 0), true},
		{"find", func(txn Txn) { txn.Find(key); txn.Peek(key) }, false},
		{"set longer", set(make([]byte, 1000), 0), true},
		{"expire", func(txn Txn) { txn.SetExpire(key, now+1000) }, true},
		{"expire later", func(txn Txn) { txn.SetExpire(key, now+2000) }, true},
		{"resize in place", func(txn Txn) { txn.Resize(key, 999) }, true},
		{"resize", func(txn Txn) { txn.Resize(key, 100_000) }, true},
		{"resize to large", func(txn Txn) { txn.Resize(key, 200_000) }, true},
		{"resize large", func(txn Txn) { txn.Resize(key, 210_000) }, true},
		{"set large", set(large, 0), true},
		{"delete", func(txn Txn) { txn.Delete(key) }, true},
		{"others", func(txn Txn) {
			for i := range 8 {
				if err := txn.Set(fmt.Append(nil, i), large[:100], TypeString, 0); err != nil {
					t.Fatal(err)
				}
			}
		}, false},
		{"set to expire", set([]byte("1"), now+5), true},
	} {
		before := version()
		txn := e.Lock(p, now)
		step.f(txn)
		txn.Unlock()
		if changed := version() != before; changed != step.changes {
			t.Errorf("%s: changed is %v", step.name, changed)
		}
	}

	before := version()
	txn := e.Lock(p, now+10)
	if txn.VersionOf(key) == before {
		t.Error("an expired key has its old version")
	}
	set([]byte("2"), 0)(txn)
	txn.Unlock()
	for name, f := range map[string]func(){"drop": func() { e.Drop(p) }, "reset": func() { e.Reset(5) }} {
		txn := e.Lock(p, now)
		set([]byte("3"), 0)(txn)
		txn.Unlock()
		before := version()
		f()
		if version() == before {
			t.Errorf("%s changed nothing", name)
		}
	}

	other := e.Lock(Section(p, 1), now)
	set([]byte("4"), 0)(other)
	other.Unlock()
	before = version()
	if e.Clear(Section(p, 1)) != 1 || version() != before {
		t.Error("a key has another version because another database was cleared")
	}
}

// An evicted key is a changed one.
func TestVersionOfEvicted(t *testing.T) {
	e := open(t, Config{MaxBytes: 8 << 20, Shards: 4})
	txn := e.Lock(1, 0)
	if err := txn.Set([]byte("key"), []byte("1"), TypeString, 0); err != nil {
		t.Fatal(err)
	}
	before := txn.VersionOf([]byte("key"))
	txn.Unlock()
	for i := 0; ; i++ {
		txn := e.Lock(1, 0)
		if _, found := txn.Peek([]byte("key")); !found {
			if txn.VersionOf([]byte("key")) == before {
				t.Error("the version stays")
			}
			txn.Unlock()
			return
		}
		txn.Unlock()
		txn = e.Lock(uint16(i%4096), 0)
		if err := txn.Set(fmt.Append(nil, i), make([]byte, 1000), TypeString, 0); err != nil {
			t.Fatal(err)
		}
		txn.Unlock()
	}
}

// What ends within a Txn leaves the shard locked.
func TestWithin(t *testing.T) {
	e := open(t, Config{MaxBytes: 8 << 20, Shards: 4})
	txn := e.Lock(1, 0)
	txn.Within().Unlock()
	if e.shardOf(1).mu.TryLock() {
		t.Fatal("the shard is not locked")
	}
	txn.Unlock()
	if !e.shardOf(1).mu.TryLock() {
		t.Fatal("the shard is locked")
	}
	e.shardOf(1).mu.Unlock()
}
