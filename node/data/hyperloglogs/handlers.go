package hyperloglogs

import (
	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// Family has the commands of HyperLogLogs.
var Family = exec.Family{
	Handlers: map[command.ID]exec.Handler{
		command.PFAdd:   pfAdd,
		command.PFCount: pfCount,
		command.PFMerge: pfMerge,
	},
}
