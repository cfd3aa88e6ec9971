package sortedsets

import (
	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// Family has the commands of sorted sets.
var Family = exec.Family{
	Type: &sortedType,
	Handlers: map[command.ID]exec.Handler{
		command.BZMPop:           bzmPop,
		command.BZPopMax:         func(r *exec.Request) { bzPop(r, true) },
		command.BZPopMin:         func(r *exec.Request) { bzPop(r, false) },
		command.ZAdd:             zAdd,
		command.ZCard:            zCard,
		command.ZCount:           zCount,
		command.ZIncrBy:          zIncrBy,
		command.ZLexCount:        zLexCount,
		command.ZMPop:            zMPop,
		command.ZMScore:          zMScore,
		command.ZPopMax:          zPopMax,
		command.ZPopMin:          zPopMin,
		command.ZRandMember:      zRandMember,
		command.ZRange:           zRange,
		command.ZRangeByLex:      zRangeByLex,
		command.ZRangeByScore:    zRangeByScore,
		command.ZRank:            zRank,
		command.ZRem:             zRem,
		command.ZRemRangeByLex:   zRemRangeByLex,
		command.ZRemRangeByRank:  zRemRangeByRank,
		command.ZRemRangeByScore: zRemRangeByScore,
		command.ZRevRange:        zRevRange,
		command.ZRevRangeByLex:   zRevRangeByLex,
		command.ZRevRangeByScore: zRevRangeByScore,
		command.ZRevRank:         zRevRank,
		command.ZScan:            zScan,
		command.ZScore:           zScore,
		command.ZUnion:           zUnion,
		command.ZInter:           zInter,
		command.ZDiff:            zDiff,
		command.ZInterCard:       zInterCard,
		command.ZUnionStore:      zUnionStore,
		command.ZInterStore:      zInterStore,
		command.ZDiffStore:       zDiffStore,
		command.ZRangeStore:      zRangeStore,
	},
}
