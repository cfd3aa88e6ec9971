package engine

import (
	"fmt"
	"testing"
)

// takings of a test are about the key q of a section.
type takingsTest struct {
	t       *testing.T
	e       *Engine
	section uint16
	now     int64
}

func newTakings(t *testing.T) *takingsTest {
	return &takingsTest{t: t, e: open(t, Config{MaxBytes: 16 << 20, Shards: 2}), section: Section(3, 1), now: 1000}
}

func (x *takingsTest) do(f func(txn Txn)) {
	txn := x.e.Lock(x.section, x.now)
	defer txn.Unlock()
	f(txn)
}

func (x *takingsTest) set(key string, expireAt int64) {
	x.t.Helper()
	x.do(func(txn Txn) {
		if err := txn.Set([]byte(key), []byte("v"), TypeList, expireAt); err != nil {
			x.t.Fatal(err)
		}
	})
}

func (x *takingsTest) take(key string) (token uint64) {
	x.do(func(txn Txn) { token = txn.Take([]byte(key)) })
	return token
}

func (x *takingsTest) empty(key string) { x.do(func(txn Txn) { txn.Empty([]byte(key)) }) }

func (x *takingsTest) want(key string, token uint64, fate Fate, expireAt int64) {
	x.t.Helper()
	x.do(func(txn Txn) {
		if f, at := txn.Returns([]byte(key), token); f != fate || at != expireAt {
			x.t.Errorf("the fate of %s is %d, expiry %d; want %d, %d", key, f, at, fate, expireAt)
		}
	})
}

func always() bool { return true }

// TestTakings: what happens to a key between Take and Returns, whether the key is there or was emptied.
func TestTakings(t *testing.T) {
	q := []byte("q")
	for name, c := range map[string]struct {
		happens func(x *takingsTest)
		fate    Fate
	}{
		"nothing":         {func(*takingsTest) {}, Kept},
		"push":            {func(x *takingsTest) { x.set("q", 0) }, Kept},
		"push and pop":    {func(x *takingsTest) { x.set("q", 5000); x.empty("q") }, Kept},
		"another key":     {func(x *takingsTest) { x.do(func(txn Txn) { txn.Delete([]byte("p")) }) }, Kept},
		"another section": {func(x *takingsTest) { x.e.ClearUnheld(Section(3, 2), always) }, Kept},
		"delete":          {func(x *takingsTest) { x.do(func(txn Txn) { txn.Delete(q) }) }, Lost},
		"delete and push": {func(x *takingsTest) { x.do(func(txn Txn) { txn.Delete(q) }); x.set("q", 0) }, Lost},
		"overwrite":       {func(x *takingsTest) { x.do(func(txn Txn) { txn.Overwrite(q) }); x.set("q", 0) }, Lost},
		"expiry":          {func(x *takingsTest) { x.set("q", 2000); x.now = 2000 }, Lost},
		"clear":           {func(x *takingsTest) { x.e.ClearUnheld(x.section, always) }, Lost},
		"clear all":       {func(x *takingsTest) { x.e.DropUnheld(3, always) }, Lost},
		"clear nothing":   {func(x *takingsTest) { x.e.DropUnheld(3, func() bool { return false }) }, Kept},
		"drop":            {func(x *takingsTest) { x.e.Drop(3) }, Unknown},
		"forget":          {func(x *takingsTest) { x.e.Forget(3) }, Unknown},
		"reset":           {func(x *takingsTest) { x.e.Reset(7) }, Unknown},
		"copy":            {func(x *takingsTest) { x.e.SetCopy(3, PlainCopy); x.e.SetCopy(3, NoCopy) }, Unknown},
	} {
		for _, emptied := range []bool{false, true} {
			t.Run(fmt.Sprint(name, emptied), func(t *testing.T) {
				x := newTakings(t)
				x.set("q", 9000)
				token := x.take("q")
				if emptied {
					x.empty("q")
				}
				c.happens(x)
				expireAt := int64(0)
				x.do(func(txn Txn) {
					if _, found := txn.Peek(q); c.fate == Kept && !found {
						expireAt = 9000
					}
				})
				if name == "push and pop" {
					expireAt = 5000
				}
				x.want("q", token, c.fate, expireAt)
				if again := x.take("q"); again != 0 {
					x.do(func(txn Txn) {
						if f, _ := txn.Returns(q, again); f != Kept {
							t.Errorf("then the fate of what is taken anew is %d", f)
						}
					})
				}
				x.want("q", token+1<<32, Unknown, 0)
			})
		}
	}
}

// TestTakingsOfParts: the root of a value with parts goes when its key is deleted, and when it gets another one.
func TestTakingsOfParts(t *testing.T) {
	x := newTakings(t)
	x.e, x.section = open(t, Config{MaxBytes: 16 << 20, Shards: 2, Forms: bags()}), 3
	for _, rename := range []bool{false, true} {
		from, to := x.take("q"), x.take("r")
		makeBag(t, x.e, x.section, "q", 20, 300)
		x.do(func(txn Txn) {
			v, _ := bag(txn, "q")
			if !rename {
				v.Delete()
			} else if err := txn.Rename(v, []byte("r"), 0); err != nil {
				t.Fatal(err)
			}
		})
		x.want("q", from, Lost, 0)
		if rename {
			x.want("r", to, Lost, 0)
		} else {
			x.want("r", to, Kept, 0)
		}
	}
}

// TestTakingsAreFew: a shard remembers few keys, those that were taken from last, and not for long.
func TestTakingsAreFew(t *testing.T) {
	x := newTakings(t)
	x.set("q0", 0)
	tokens := make([]uint64, maxTakings+1)
	for i := range maxTakings {
		tokens[i] = x.take(fmt.Sprint("q", i))
	}
	x.take("q0")
	tokens[maxTakings] = x.take(fmt.Sprint("q", maxTakings))
	for i, token := range tokens {
		fate := Kept
		if i == 1 { // from which was taken first
			fate = Unknown
		}
		x.want(fmt.Sprint("q", i), token, fate, 0)
	}
	if again := x.take("q1"); again == tokens[1] {
		t.Error("a key that is remembered anew has its old token")
	}
	x.want("q1", tokens[1], Unknown, 0)
	x.now += takenMillis
	x.do(func(txn Txn) {
		txn.Delete([]byte("q0"))
		if k := &txn.s.takings; k.first != nil || k.last != nil || len(k.keys) > 0 {
			t.Errorf("%d keys are remembered for too long", len(k.keys))
		}
	})
	if x.take(string(make([]byte, maxTakenKey+1))) != 0 {
		t.Error("a long key has a token")
	}
}
