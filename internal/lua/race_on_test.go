//go:build race

package lua

// raceDetector says that every access to memory takes ten times as long.
const raceDetector = true
