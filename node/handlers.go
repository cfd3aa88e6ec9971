package node

import "github.com/dunlin-cache/dunlin/internal/command"

// handler executes one command: it reads r.args, acts on the engine, and answers
// with exactly one reply. What dispatch has checked before is in doc.go.
type handler func(r *request)

// handlers has the handler of every command on keys, and of the few others that
// only a node can answer. All others that are Built are answered by
// internal/session; a test holds this list to the table of commands.
var handlers = map[command.ID]handler{
	// strings.go
	command.Get:      get,
	command.GetDel:   getDel,
	command.GetSet:   getSet,
	command.StrLen:   strlen,
	command.Append:   appendTo,
	command.GetRange: getRange,
	command.Substr:   getRange,
	command.SetRange: setRange,

	// lcs.go
	command.LCS: lcs,

	// set.go
	command.Set:     set,
	command.SetNX:   setNX,
	command.SetEx:   setEX,
	command.PSetEx:  pSetEX,
	command.GetEx:   getEX,
	command.DelIfEq: delIfEq,

	// bitmap.go, bitscan.go, bitfield.go, bitop.go
	command.SetBit:     setBit,
	command.GetBit:     getBit,
	command.BitCount:   bitCount,
	command.BitPos:     bitPos,
	command.BitField:   bitField,
	command.BitFieldRO: bitField,
	command.BitOp:      bitOp,

	// counters.go
	command.Incr:        incr,
	command.Decr:        decr,
	command.IncrBy:      incrBy,
	command.DecrBy:      decrBy,
	command.IncrByFloat: incrByFloat,

	// expire.go
	command.Expire:      expire,
	command.PExpire:     pExpire,
	command.ExpireAt:    expireAt,
	command.PExpireAt:   pExpireAt,
	command.Persist:     persist,
	command.TTL:         ttl,
	command.PTTL:        ttl,
	command.ExpireTime:  ttl,
	command.PExpireTime: ttl,

	// multi.go
	command.MGet:   mGet,
	command.MSet:   mSet,
	command.MSetNX: mSetNX,
	command.MSetEx: mSetEX,
	command.Del:    del,
	command.Unlink: del,
	command.Exists: existing,
	command.Touch:  touch,

	// hyperloglog.go
	command.PFAdd:   pfAdd,
	command.PFCount: pfCount,
	command.PFMerge: pfMerge,

	// keys.go, scan.go: over all keys of this node
	command.Type:     keyType,
	command.DBSize:   dbSize,
	command.FlushAll: flush,
	command.FlushDB:  flush,
	command.Keys:     keys,
	command.Scan:     scan,
	command.Info:     info, // info.go

	// copy.go
	command.Rename:   rename,
	command.RenameNX: renameNX,
	command.Copy:     copyKey,

	// dump.go, restore.go
	command.Dump:    dump,
	command.Restore: restore,

	// wait.go
	command.Wait: wait,

	// randomkey.go
	command.RandomKey: randomKey,

	// object.go
	command.ObjectEncoding: objectEncoding,
	command.ObjectFreq:     objectFreq,
	command.ObjectIdleTime: objectIdleTime,
	command.ObjectRefCount: objectRefCount,

	// timing.go
	command.SlowLogGet:   slowLog,
	command.SlowLogLen:   slowLog,
	command.SlowLogReset: slowLog,

	command.LatencyHistogram: latencyHistogram,

	// hotkeys.go
	command.HotKeysBig:   bigKeys,
	command.HotKeysGet:   hotKeys,
	command.HotKeysReset: hotKeysReset,

	// usage.go
	command.MemoryUsage: memoryUsage,
	command.MemoryStats: memoryStats,
}

// internalHandler is a handler of DUNLIN. open: also for those who have not
// proved yet that they know the secret.
type internalHandler struct {
	open bool
	run  handler
}

// internalHandlers has the commands between members: pipes.go, internalcmd.go.
var internalHandlers map[command.ID]*internalHandler

func makeInternalHandlers() map[command.ID]*internalHandler {
	return map[command.ID]*internalHandler{
		command.DunlinChallenge: {open: true, run: challenge},
		command.DunlinPipe:      {open: true, run: openPipe},
		command.DunlinPeer:      {open: true, run: authenticatePeer},
		command.DunlinEach:      {run: each},
		command.DunlinEffects:   {run: takeEffects},
		command.DunlinExec:      {run: execFor},
		command.DunlinFetch:     {run: redeem},
		command.DunlinReport:    {run: sendReport},
		command.DunlinRetry:     {run: retry},
		command.DunlinStream:    {run: openStream},
		command.DunlinTable:     {run: sendTable},
		command.DunlinTake:      {run: takeTable},
		command.DunlinValue:     {run: takeValue},
		command.DunlinWatch:     {run: watchFor},
	}
}

// plan is how dispatch treats a command: one load instead of a walk through its
// row for every command.
type plan struct {
	handler handler // nil: not ours
	keys    keyPlan
	heavy   bool // its time is always taken, see timing.go
}

var plans *[command.NumIDs]plan

// A handler may have commands dispatched, so that neither can be initialized where it is declared.
func init() { plans, internalHandlers = makePlans(), makeInternalHandlers() }

func makePlans() *[command.NumIDs]plan {
	var all [command.NumIDs]plan
	for id, h := range handlers {
		c := command.ByID(id)
		if !c.Built {
			panic("BUG: handler for a command that is not built: " + c.Name)
		}
		all[id] = plan{handler: h, keys: keyPlanOf(c), heavy: isHeavy(c)}
	}
	return &all
}
