package bitmaps

import (
	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// Family has the commands of bitmaps.
var Family = exec.Family{
	Handlers: map[command.ID]exec.Handler{
		command.SetBit:     setBit,
		command.GetBit:     getBit,
		command.BitCount:   bitCount,
		command.BitPos:     bitPos,
		command.BitField:   bitField,
		command.BitFieldRO: bitField,
		command.BitOp:      bitOp,
	},
}
