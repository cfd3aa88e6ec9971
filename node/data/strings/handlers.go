package strings

import (
	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// Family has the commands of strings.
var Family = exec.Family{
	Type: &stringType,
	Handlers: map[command.ID]exec.Handler{
		command.Get:         get,
		command.GetDel:      getDel,
		command.GetSet:      getSet,
		command.StrLen:      strlen,
		command.Append:      appendTo,
		command.GetRange:    getRange,
		command.Substr:      getRange,
		command.SetRange:    setRange,
		command.LCS:         commonSubsequence,
		command.Set:         set,
		command.SetNX:       setNX,
		command.SetEx:       setEX,
		command.PSetEx:      pSetEX,
		command.GetEx:       getEX,
		command.DelIfEq:     delIfEq,
		command.DelEx:       delEx,
		command.Digest:      digest,
		command.Incr:        incr,
		command.Decr:        decr,
		command.IncrBy:      incrBy,
		command.DecrBy:      decrBy,
		command.IncrByFloat: incrByFloat,
		command.IncrEx:      incrEx,
		command.MGet:        mGet,
		command.MSet:        mSet,
		command.MSetNX:      mSetNX,
		command.MSetEx:      mSetEX,
	},
}
