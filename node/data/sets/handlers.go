package sets

import (
	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// Family has the commands of sets.
var Family = exec.Family{
	Type: &setType,
	Handlers: map[command.ID]exec.Handler{
		command.SAdd:        sAdd,
		command.SRem:        sRem,
		command.SCard:       sCard,
		command.SIsMember:   sIsMember,
		command.SMIsMember:  sMIsMember,
		command.SMembers:    sMembers,
		command.SPop:        sPop,
		command.SRandMember: sRandMember,
		command.SMove:       sMove,
		command.SScan:       sScan,
		command.SInter:      sInter,
		command.SInterCard:  sInterCard,
		command.SInterStore: sInterStore,
		command.SUnion:      sUnion,
		command.SUnionStore: sUnionStore,
		command.SDiff:       sDiff,
		command.SDiffStore:  sDiffStore,
	},
}
