package node

// The kinds of engine.Mark in a stream.
const (
	markBegin    uint8 = 1 + iota // of a snapshot: what the receiver has is dropped. Arg: since
	markSynced                    // the snapshot is complete
	markContinue                  // a copy with the seal goes on. Arg: the seal
	markHanded                    // the last of this owner. Arg: the seal
)
