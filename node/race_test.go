//go:build race

package node

// raceDetector is true where every access to memory takes ten times as long.
const raceDetector = true
