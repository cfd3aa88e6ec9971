package shape

import "github.com/dunlin-cache/dunlin/node/engine"

// Rebuild gives key a new value with parts, over its packed value: old is a copy of that, or nil if
// there is no such key. fill gives the new value its entries, and takes memory as it goes. If fill
// fails, the packed value is there again, as if nothing had happened, but for the effects. The
// caller notes what fill has made.
func Rebuild(t engine.Txn, key []byte, typ engine.Type, own int, expireAt int64, old []byte, fill func(v engine.Parts) error) (engine.Parts, error) {
	if err := t.Reserve(engine.Room{Roots: []int{len(key) + own}}); err != nil {
		return engine.Parts{}, err
	}
	v, err := t.NewParts(key, typ, own, expireAt)
	if err != nil {
		return v, err
	}
	if err = fill(v); err == nil {
		return v, nil
	}
	if old == nil || t.Set(key, old, typ, expireAt) != nil {
		t.Delete(key)
	}
	return v, err
}
