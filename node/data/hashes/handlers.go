package hashes

import (
	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// Family has the commands of hashes.
var Family = exec.Family{
	Type: &hashType,
	Handlers: map[command.ID]exec.Handler{
		command.HSet:         hSet,
		command.HMSet:        hmSet,
		command.HSetNX:       hSetNX,
		command.HSetEx:       hSetEX,
		command.HGet:         hGet,
		command.HMGet:        hmGet,
		command.HGetEx:       hGetEX,
		command.HGetDel:      hGetDel,
		command.HDel:         hDel,
		command.HLen:         hLen,
		command.HExists:      hExists,
		command.HStrLen:      hStrLen,
		command.HIncrBy:      hIncrBy,
		command.HIncrByFloat: hIncrByFloat,
		command.HGetAll:      hGetAll,
		command.HKeys:        hKeys,
		command.HVals:        hVals,
		command.HRandField:   hRandField,
		command.HScan:        hScan,
		command.HExpire:      hExpire,
		command.HPExpire:     hPExpire,
		command.HExpireAt:    hExpireAt,
		command.HPExpireAt:   hPExpireAt,
		command.HTTL:         hTTL,
		command.HPTTL:        hPTTL,
		command.HExpireTime:  hExpireTime,
		command.HPExpireTime: hPExpireTime,
		command.HPersist:     hPersist,
	},
}
