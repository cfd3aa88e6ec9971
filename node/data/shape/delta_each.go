package shape

import "github.com/dunlin-cache/dunlin/node/engine"

// EachChange calls set and remove for the changes in a delta of a table whose elements do not
// expire and have short values, for a type that keeps more of an element than the table does. It
// stops at the first error.
func (t *Table) EachChange(delta []byte, set func(key, value []byte) error, remove func(key []byte)) error {
	d := deltaReader{rest: delta}
	for len(d.rest) > 0 {
		kind, key := d.byte(), d.string()
		switch kind {
		case deltaSet:
			value := []byte(nil)
			if t.Items > 1 {
				value = d.string()
			}
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
