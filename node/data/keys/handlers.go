package keys

import (
	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// Family has the commands on keys whatever they hold.
var Family = exec.Family{
	Handlers: map[command.ID]exec.Handler{
		command.Del:            del,
		command.Unlink:         del,
		command.Exists:         existing,
		command.Touch:          touch,
		command.Type:           keyType,
		command.Rename:         rename,
		command.RenameNX:       renameNX,
		command.Copy:           copyKey,
		command.Move:           moveKey,
		command.Dump:           dump,
		command.Restore:        restore,
		command.ObjectEncoding: objectEncoding,
		command.ObjectFreq:     objectFreq,
		command.ObjectIdleTime: objectIdleTime,
		command.ObjectRefCount: objectRefCount,
		command.MemoryUsage:    memoryUsage,
		command.Expire:         expire,
		command.PExpire:        pExpire,
		command.ExpireAt:       expireAt,
		command.PExpireAt:      pExpireAt,
		command.Persist:        persist,
		command.TTL:            ttl,
		command.PTTL:           ttl,
		command.ExpireTime:     ttl,
		command.PExpireTime:    ttl,
		command.DBSize:         dbSize,
		command.FlushAll:       flush,
		command.FlushDB:        flush,
		command.Keys:           keys,
		command.Scan:           scan,
		command.RandomKey:      randomKey,

		command.ClusterScan:            clusterScan,
		command.ClusterCountKeysInSlot: slotsCounted(sumOfSlots),
		command.ClusterGetKeysInSlot:   keysInSlot,
		command.ClusterSlotStats:       slotsCounted(statsOfSlots),
	},
}
