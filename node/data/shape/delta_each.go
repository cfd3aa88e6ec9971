package shape

import "github.com/dunlin-cache/dunlin/node/engine"

// EachChange calls set and remove for the changes in a delta of a value whose elements have a short
// value each and do not expire. It stops at the first error.
func EachChange(delta []byte, set func(key, value []byte) error, remove func(key []byte)) error {
	d := deltaReader{rest: delta}
	for len(d.rest) > 0 {
		kind, key := d.byte(), d.string()
		switch kind {
		case deltaSet:
			value := d.string()
			if d.bad || len(key) > engine.MaxKeyLen {
				return ErrMalformed
			}
			if err := set(key, value); err != nil {
				return err
			}
		case deltaDelete:
			if d.bad {
				return ErrMalformed
			}
			remove(key)
		default:
			return ErrMalformed
		}
	}
	return nil
}
