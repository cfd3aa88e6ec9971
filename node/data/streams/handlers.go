package streams

import (
	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// Family has the commands of streams.
var Family = exec.Family{
	Type: &streamType,
	Handlers: map[command.ID]exec.Handler{
		command.XAdd:                 xAdd,
		command.XTrim:                xTrim,
		command.XDel:                 xDel,
		command.XDelEx:               xDelEx,
		command.XSetID:               xSetID,
		command.XLen:                 xLen,
		command.XRange:               xRange,
		command.XRevRange:            xRevRange,
		command.XGroupCreate:         xGroupCreate,
		command.XGroupSetID:          xGroupSetID,
		command.XGroupDestroy:        xGroupDestroy,
		command.XGroupCreateConsumer: xGroupCreateConsumer,
		command.XGroupDelConsumer:    xGroupDelConsumer,
		command.XAck:                 xAck,
		command.XAckDel:              xAckDel,
		command.XPending:             xPending,
		command.XClaim:               xClaim,
		command.XAutoClaim:           xAutoClaim,
		command.XRead:                xRead,
		command.XReadGroup:           xReadGroup,
		command.XInfoStream:          xInfoStream,
		command.XInfoGroups:          xInfoGroups,
		command.XInfoConsumers:       xInfoConsumers,
	},
}
