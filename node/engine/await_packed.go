package engine

import "unsafe"

// What very many wait with is small: a waiter is found by the address of its places, and keeps a pointer to its text
// with a length of 4 bytes. The rule that makes that safe: a place is the first field of what is allocated with it, and
// is never copied elsewhere.

// waiter returns who stands at the place: the Waiter, or the further, of which it is the first field.
func (at *place) waiter() *Waiter {
	if at.index == 0 {
		return (*Waiter)(unsafe.Pointer(at))
	}
	return (*further)(unsafe.Pointer(at)).of
}

// keep has w keep a text, as it is.
func (w *Waiter) keep(text string) { w.text, w.length = unsafe.StringData(text), uint32(len(text)) }

// Text returns what Await was given.
func (w *Waiter) Text() string { return unsafe.String(w.text, w.length) }

// key returns the key, a view that must not be changed.
func (at *place) key() []byte {
	key := at.waiter().Text()[at.at:][:at.length]
	return unsafe.Slice(unsafe.StringData(key), len(key))
}
