//go:build shortruns

package streams

const (
	checkedAtOnce   = 3
	changedAtOnce   = 3
	refSteps        = 3
	deliveredAtOnce = 2
	scannedAtOnce   = 2 * existsCost
	claimSteps      = 3 * (lookCost + claimCost)
	trimSteps       = 3
	notedAtOnce     = 1

	shortSteps, shortBytes = 60, 3000
	sliceSteps, sliceBytes = 40, 800

	dumpSteps, dumpBytes = 12, 300
)
