//go:build checked

package streams

import "os"

// With the build tag checked and SHORT_RUNS in the environment a run does next to nothing, so that tests with few entries
// take many runs.
func init() {
	if os.Getenv("SHORT_RUNS") == "" {
		return
	}
	checkedAtOnce = 3
	changedAtOnce = 3
	refSteps = 3
	deliveredAtOnce = 2
	scannedAtOnce = 2 * existsCost
	claimSteps = 3 * (lookCost + claimCost)
	trimSteps = 3
	notedAtOnce = 1
	shortSteps, shortBytes = 60, 3000
	sliceSteps, sliceBytes = 40, 800
	dumpSteps, dumpBytes = 12, 300
}
