package node

import (
	"cmp"
	"fmt"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/node/data/bitmaps"
	"github.com/dunlin-cache/dunlin/node/data/geo"
	"github.com/dunlin-cache/dunlin/node/data/hashes"
	"github.com/dunlin-cache/dunlin/node/data/hyperloglogs"
	"github.com/dunlin-cache/dunlin/node/data/keys"
	"github.com/dunlin-cache/dunlin/node/data/lists"
	"github.com/dunlin-cache/dunlin/node/data/sets"
	"github.com/dunlin-cache/dunlin/node/data/sortedsets"
	"github.com/dunlin-cache/dunlin/node/data/streams"
	"github.com/dunlin-cache/dunlin/node/data/strings"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/ring"
)

// ownHandlers executes the commands that concern the node rather than its keys.
var ownHandlers = map[command.ID]exec.Handler{
	command.Info:             own(info),
	command.Wait:             own(wait),
	command.SlowLogGet:       own(slowLog),
	command.SlowLogLen:       own(slowLog),
	command.SlowLogReset:     own(slowLog),
	command.LatencyHistogram: own(latencyHistogram),
	command.HotKeysBig:       own(bigKeys),
	command.HotKeysGet:       own(hotKeys),
	command.HotKeysReset:     own(hotKeysReset),
	command.MemoryStats:      own(memoryStats),

	command.Eval:            own(eval),
	command.EvalRO:          own(eval),
	command.EvalSha:         own(eval),
	command.EvalShaRO:       own(eval),
	command.FCall:           own(fcall),
	command.FCallRO:         own(fcall),
	command.FunctionDelete:  own(changeFunctions),
	command.FunctionDump:    own(dumpFunctions),
	command.FunctionFlush:   own(changeFunctions),
	command.FunctionKill:    own(killFunctions),
	command.FunctionList:    own(listFunctions),
	command.FunctionLoad:    own(changeFunctions),
	command.FunctionRestore: own(changeFunctions),
	command.FunctionStats:   own(functionStats),

	command.ScriptExists: own(scriptExists),
	command.ScriptFlush:  own(flushScripts),
	command.ScriptKill:   own(killScripts),
	command.ScriptLoad:   own(loadScript),
	command.ScriptShow:   own(showScript),

	command.Publish:             own(publish),
	command.SPublish:            own(publish),
	command.PubSubChannels:      own(pubSubChannels),
	command.PubSubNumPat:        own(pubSubNumPat),
	command.PubSubNumSub:        own(pubSubNumSub),
	command.PubSubShardChannels: own(pubSubChannels),
	command.PubSubShardNumSub:   own(pubSubNumSub),
}

// families are the commands on keys. A new type of value is a package of node/data and a line here.
var families = []exec.Family{
	strings.Family,
	bitmaps.Family,
	geo.Family,
	hashes.Family,
	hyperloglogs.Family,
	keys.Family,
	lists.Family,
	sortedsets.Family,
	sets.Family,
	streams.Family,
	{Handlers: ownHandlers},
}

// handlers executes every command on keys, and the few others that only a node can answer.
// internal/session answers all other commands that are Built; a test compares this list with the
// table of commands. types are the types of values.
var handlers, types = concat(families)

func concat(families []exec.Family) (map[command.ID]exec.Handler, *exec.Types) {
	all := make(map[command.ID]exec.Handler)
	var types []*exec.Type
	for _, f := range families {
		for id, h := range f.Handlers {
			if all[id] != nil {
				panic("BUG: two handlers for " + command.ByID(id).Name)
			}
			all[id] = leveled(id, cmp.Or(f.Type, f.Of), h)
		}
		if f.Type != nil {
			types = append(types, f.Type)
		}
	}
	return all, exec.NewTypes(types...)
}

// leveled returns the handler of a command of a type's family. It refuses the command while the
// cluster's level is too low for the type, or for commands that wait for keys.
func leveled(id command.ID, typ *exec.Type, h exec.Handler) exec.Handler {
	if typ == nil || typ.Level == 0 {
		return h
	}
	blocks := command.ByID(id).Flags&command.Blocking != 0
	return func(r *exec.Request) {
		if err := typ.Check(r.Level()); err != nil {
			r.Fail(err.Error())
			return
		}
		if blocks && r.Level() < ring.BlockingLevel {
			r.Fail(fmt.Sprintf(errBlockingLevel, ring.BlockingLevel, r.Level()))
			return
		}
		h(r)
	}
}

// eachHandlers executes the node's part of commands over all nodes (DUNLIN EACH).
var eachHandlers map[command.ID]exec.Handler

func makeEachHandlers() map[command.ID]exec.Handler {
	all := map[command.ID]exec.Handler{
		command.ConfigGet:       own(configurePart),
		command.ConfigSet:       own(setPart),
		command.ConfigResetStat: own(configurePart),
	}
	for id, h := range handlers {
		c := command.ByID(id)
		// If the proxy renders figures that nodes count, it asks for INFO, whatever the command is.
		if c.Route == command.AllNodes && (c.Merge != command.MergeInfo || id == command.Info) {
			all[id] = h
		}
	}
	return all
}

// internalHandler executes a DUNLIN command.
type internalHandler struct {
	open    bool // also to a peer that has not proved that it is a member
	clients bool // it carries a client's command, so it counts as one
	run     func(r *request)
}

// internalHandlers has the commands between members (pipes.go, member_commands.go).
var internalHandlers map[command.ID]*internalHandler

func makeInternalHandlers() map[command.ID]*internalHandler {
	return map[command.ID]*internalHandler{
		command.DunlinCancel:    {run: cancelJob},
		command.DunlinChallenge: {open: true, run: challenge},
		command.DunlinClaim:     {run: claim},
		command.DunlinPass:      {run: pass},
		command.DunlinAs:        {run: actAs},
		command.DunlinPipe:      {open: true, run: openPipe},
		command.DunlinPeer:      {open: true, run: authenticatePeer},
		command.DunlinConfigure: {run: configureCluster},
		command.DunlinEach:      {run: each, clients: true},
		command.DunlinEffects:   {run: takeEffects},
		command.DunlinEmpty:     {run: sendEmpty},
		command.DunlinExec:      {run: execFor, clients: true},
		command.DunlinFetch:     {run: redeem},
		command.DunlinGather:    {run: gather, clients: true},
		command.DunlinLend:      {run: lend},
		command.DunlinCede:      {run: cede},
		command.DunlinPublish:   {run: publishFor},
		command.DunlinLevel:     {run: raisePipe},
		command.DunlinListen:    {run: listen},
		command.DunlinMissed:    {run: takeMissed},
		command.DunlinHanded:    {run: takeHanded},
		command.DunlinReport:    {run: sendReport},
		command.DunlinReserve:   {run: reserve},
		command.DunlinWithin:    {run: within},
		command.DunlinRelease:   {run: release},
		command.DunlinRetry:     {run: retry},
		command.DunlinReturn:    {run: returnPopped},
		command.DunlinSettings:  {run: sendSettings},
		command.DunlinStream:    {run: openStream},
		command.DunlinTable:     {run: sendTable},
		command.DunlinTake:      {run: takeTable},
		command.DunlinTopics:    {run: takeTopics},
		command.DunlinValue:     {run: takeValue},
		command.DunlinWatch:     {run: watchFor, clients: true},
	}
}

// plan says how dispatch executes a command. It saves a walk through the command's row.
type plan struct {
	handler exec.Handler // nil: not ours
	keys    keyPlan
	timed   bool // always, not only with many arguments; see timing.go
	lists   bool // long requests are listed in turns, see listing.go
	looks   bool // its client rests behind it, see looks.go
}

var plans *[command.NumIDs]plan

// A handler can dispatch commands, so these cannot be initialized where they are declared.
func init() {
	plans, eachHandlers, internalHandlers = makePlans(), makeEachHandlers(), makeInternalHandlers()
}

func makePlans() *[command.NumIDs]plan {
	var all [command.NumIDs]plan
	for id, h := range handlers {
		c := command.ByID(id)
		if !c.Built {
			panic("BUG: handler for a command that is not built: " + c.Name)
		}
		all[id] = plan{handler: h, keys: keyPlanOf(c), timed: !c.Quick(), looks: looksOnly(c)}
		if k := all[id].keys; k == oneKey || k == oneSlot || k == anySlots {
			all[id].lists = isListed(c)
		}
	}
	all[command.Watch].lists = true
	return &all
}
