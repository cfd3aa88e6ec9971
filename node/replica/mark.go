package replica

// Mark is a message of the sender between a partition's effects, in their order.
type Mark struct {
	Kind uint8
	Arg  uint64
}

// The kinds of a Mark. They are part of the protocol between nodes: do not renumber them.
const (
	NoMark uint8 = iota
	// MarkBegin has the receiver drop its copy. A snapshot follows if the receiver is still to have
	// a copy. Arg is the epoch in which the data began.
	MarkBegin
	MarkSynced   // the snapshot is complete
	MarkContinue // changes to a copy that was handed over follow. Arg: its seal
	MarkHanded   // this owner sends nothing more. Arg: the seal
)
