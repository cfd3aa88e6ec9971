//go:build race

package harness

// RaceEnabled reports whether the tests and the binaries that they build have the race detector.
const RaceEnabled = true
