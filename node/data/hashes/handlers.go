package hashes

import (
	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// Family has the commands of hashes.
var Family = exec.Family{
	Type: &hashType,
	Handlers: map[command.ID]exec.Handler{
		command.HSet:    hSet,
		command.HGet:    hGet,
		command.HDel:    hDel,
		command.HLen:    hLen,
		command.HExists: hExists,
		command.HGetAll: hGetAll,
	},
}
