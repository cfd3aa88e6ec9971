package streams

// mostChanged is what changedAtOnce is at most: a set of them is a word.
const mostChanged = 64

// What one run of a command, or one lock, does at most: about 0.1 ms. Nothing but atonce_checked.go changes that, for
// tests.
var (
	checkedAtOnce   = 2048        // IDs that are parsed
	changedAtOnce   = mostChanged // entries and pending entries that are changed by their IDs
	refSteps        = 256         // of a look for references, and of what is deleted then
	deliveredAtOnce = 64          // entries
	scannedAtOnce   = 2048        // steps of a look for what is idle: pending entries
	claimSteps      = 320         // of a claim
	trimSteps       = 1000
	notedAtOnce     = 64 << 10 // bytes of an entry

	// A short reply is made under the lock of its command, and a long one in slices, from a pin.
	shortSteps, shortBytes = 2048, 128 << 10
	sliceSteps, sliceBytes = 1024, 32 << 10

	// Of a dump: entries, fields and pending entries that are read, and bytes that are written, about.
	dumpSteps, dumpBytes = 512, 24 << 10
)
