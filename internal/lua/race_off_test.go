//go:build !race

package lua

// raceFactor is how much slower things are under the race detector.
const raceFactor = 1
