package about

import (
	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// Answer appends the reply to a request, in the given version of the protocol. args is the whole
// request, whose number of arguments fits its row.
type Answer func(dst []byte, v resp.Version, args [][]byte) []byte

// Answers holds this package's commands by ID; all other entries are nil.
var Answers = [command.NumIDs]Answer{
	command.CommandCmd:             commandAll,
	command.CommandCount:           commandCount,
	command.CommandInfo:            commandInfo,
	command.CommandDocs:            commandDocs,
	command.CommandList:            commandList,
	command.CommandGetKeys:         commandGetKeys,
	command.CommandGetKeysAndFlags: commandGetKeysAndFlags,

	command.ACLHelp:      help(aclHelp),
	command.ClientHelp:   help(clientHelp),
	command.ClusterHelp:  help(clusterHelp),
	command.CommandHelp:  help(commandHelp),
	command.ConfigHelp:   help(configHelp),
	command.HotKeysHelp:  help(hotKeysHelp),
	command.LatencyHelp:  help(latencyHelp),
	command.MemoryHelp:   help(memoryHelp),
	command.ModuleHelp:   help(moduleHelp),
	command.ObjectHelp:   help(objectHelp),
	command.PubSubHelp:   help(pubSubHelp),
	command.FunctionHelp: help(functionHelp),
	command.ScriptHelp:   help(scriptHelp),
	command.SlowLogHelp:  help(slowLogHelp),
	command.XGroupHelp:   help(xGroupHelp),
	command.XInfoHelp:    help(xInfoHelp),

	command.LatencyDoctor:     latencyDoctor,
	command.LatencyGraph:      latencyGraph,
	command.LatencyHistory:    none,
	command.LatencyLatest:     none,
	command.LatencyReset:      latencyReset,
	command.MemoryDoctor:      memoryDoctor,
	command.MemoryMallocStats: memoryMallocStats,
	command.MemoryPurge:       memoryPurge,

	command.ACLLoad:       refuse(errNoACLFile),
	command.ACLSave:       refuse(errNoACLFile),
	command.ACLSetUser:    refuse(errSetUser),
	command.BGRewriteAOF:  refuse(errNoDisk),
	command.BGSave:        bgSave,
	command.ClusterLinks:  none,
	command.ConfigRewrite: refuse(errNoConfigFile),
	command.Failover:      failover,
	command.HImport:       refuse(errHImport),
	command.Lolwut:        lolwut,
	command.ModuleList:    none,
	command.ModuleLoad:    refuse(errNoModules),
	command.ModuleLoadEx:  refuse(errNoModules),
	command.ModuleUnload:  refuse(errNoModules),
	command.PFDebug:       refuse(errNoPFDebug),
	command.PFSelfTest:    refuse(errNoPFDebug),
	command.PSync:         refuse(errNoSync),
	command.ReplicaOf:     replicaOf,
	command.Role:          role,
	command.Save:          refuse(errNoDisk),
	command.Shutdown:      shutdown,
	command.SlaveOf:       replicaOf,
	command.Sync:          refuse(errNoSync),
}

// SentinelHelp answers SENTINEL HELP, which is known to some connections only.
var SentinelHelp = help(sentinelHelp)

// DebugHelp answers DEBUG HELP, which has no row of its own.
var DebugHelp = help(debugHelp)
