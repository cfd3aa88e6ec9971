package lists

import (
	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// Family has the commands of lists.
var Family = exec.Family{
	Type: &listType,
	Handlers: map[command.ID]exec.Handler{
		command.LPush:      func(r *exec.Request) { push(r, head, false) },
		command.RPush:      func(r *exec.Request) { push(r, tail, false) },
		command.LPushX:     func(r *exec.Request) { push(r, head, true) },
		command.RPushX:     func(r *exec.Request) { push(r, tail, true) },
		command.LPop:       func(r *exec.Request) { pop(r, head) },
		command.RPop:       func(r *exec.Request) { pop(r, tail) },
		command.LMPop:      lmPop,
		command.LMove:      lMove,
		command.RPopLPush:  func(r *exec.Request) { move(r, tail, head) },
		command.BLPop:      func(r *exec.Request) { bPop(r, head) },
		command.BRPop:      func(r *exec.Request) { bPop(r, tail) },
		command.BLMPop:     blmPop,
		command.BLMove:     blMove,
		command.BRPopLPush: func(r *exec.Request) { bMove(r, tail, head) },
		command.LLen:       lLen,
		command.LIndex:     lIndex,
		command.LRange:     lRange,
		command.LPos:       lPos,
		command.LSet:       lSet,
		command.LInsert:    lInsert,
		command.LRem:       lRem,
		command.LTrim:      lTrim,
		command.Sort:       lSort,
		command.SortRO:     lSort,
	},
}
