// Package measure holds what a node measures of itself while it works: how fast a counter grows
// (Rate), which keys are used most (HotSketch, one a loop) and which are largest (BigWalk), how
// long keys stay (Turnover), and how long commands take by family (Latencies).
//
// A Rate and a HotSketch belong to one loop. A BigWalk and a Turnover may be used by several
// goroutines.
package measure
