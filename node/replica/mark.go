package replica

// Mark is a word of the sender's in the order of a partition's effects.
type Mark struct {
	Kind uint8
	Arg  uint64
}

// The kinds of a Mark. They are part of what nodes say to each other.
const (
	NoMark       uint8 = iota
	MarkBegin          // a snapshot follows, and what the receiver has is dropped. Arg: since, the data's epoch
	MarkSynced         // the snapshot is complete
	MarkContinue       // a copy that was handed over goes on. Arg: its seal
	MarkHanded         // this owner sends nothing more. Arg: the seal
)
