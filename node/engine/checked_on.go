//go:build checked

package engine

// checked has every handle looked at before it is followed, and what is freed overwritten: for
// tests, with -tags checked.
const checked = true
