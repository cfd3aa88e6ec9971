package replica

// Mark is a message of the sender between a partition's effects, in their order.
type Mark struct {
	Kind uint8
	Arg  uint64
}

// The kinds of a Mark. They are part of the protocol between nodes: do not renumber them.
const (
	NoMark       uint8 = iota
	MarkBegin          // the receiver drops its copy; a snapshot follows if it is still to have one. Arg: the epoch in which the data began
	MarkSynced         // the snapshot is complete
	MarkContinue       // changes to a copy that was handed over follow. Arg: its seal
	MarkHanded         // this owner sends nothing more. Arg: the seal
)
