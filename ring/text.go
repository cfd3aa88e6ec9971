package ring

import "unsafe"

// bytesOf is text as bytes, which live as long as somebody refers to them, and which nobody may change.
func bytesOf(text string) []byte { return unsafe.Slice(unsafe.StringData(text), len(text)) }
