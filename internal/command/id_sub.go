package command

// The IDs of the subcommands, after those of the top level: container, then
// the subcommand's own name.
const (
	ObjectEncoding = numTop + iota
	ObjectFreq
	ObjectHelp
	ObjectIdleTime
	ObjectRefCount

	XGroupCreate
	XGroupCreateConsumer
	XGroupDelConsumer
	XGroupDestroy
	XGroupHelp
	XGroupSetID

	XInfoConsumers
	XInfoGroups
	XInfoHelp
	XInfoStream

	ClientCaching
	ClientCapa
	ClientGetName
	ClientGetRedir
	ClientHelp
	ClientID
	ClientInfo
	ClientKill
	ClientList
	ClientMaintNotifications
	ClientNoEvict
	ClientNoTouch
	ClientPause
	ClientReply
	ClientSetInfo
	ClientSetName
	ClientTracking
	ClientTrackingInfo
	ClientUnblock
	ClientUnpause

	ACLCat
	ACLDelUser
	ACLDryRun
	ACLGenPass
	ACLGetUser
	ACLHelp
	ACLList
	ACLLoad
	ACLLog
	ACLSave
	ACLSetUser
	ACLUsers
	ACLWhoAmI

	CommandCount
	CommandDocs
	CommandGetKeys
	CommandGetKeysAndFlags
	CommandHelp
	CommandInfo
	CommandList

	ConfigGet
	ConfigHelp
	ConfigResetStat
	ConfigRewrite
	ConfigSet

	HotKeysBig
	HotKeysGet
	HotKeysHelp
	HotKeysReset

	LatencyDoctor
	LatencyGraph
	LatencyHelp
	LatencyHistogram
	LatencyHistory
	LatencyLatest
	LatencyReset

	MemoryDoctor
	MemoryHelp
	MemoryMallocStats
	MemoryPurge
	MemoryStats
	MemoryUsage

	ModuleHelp
	ModuleList
	ModuleLoad
	ModuleLoadEx
	ModuleUnload

	SlowLogGet
	SlowLogHelp
	SlowLogLen
	SlowLogReset

	ClusterAddSlots
	ClusterAddSlotsRange
	ClusterBumpEpoch
	ClusterCountFailureReports
	ClusterCountKeysInSlot
	ClusterDelSlots
	ClusterDelSlotsRange
	ClusterFailover
	ClusterFlushSlots
	ClusterForget
	ClusterGetKeysInSlot
	ClusterHelp
	ClusterInfo
	ClusterKeySlot
	ClusterLinks
	ClusterMeet
	ClusterMyID
	ClusterMyShardID
	ClusterNodes
	ClusterReplicas
	ClusterReplicate
	ClusterReset
	ClusterSaveConfig
	ClusterSetConfigEpoch
	ClusterSetSlot
	ClusterShards
	ClusterSlaves
	ClusterSlotStats
	ClusterSlots

	PubSubChannels
	PubSubHelp
	PubSubNumPat
	PubSubNumSub
	PubSubShardChannels
	PubSubShardNumSub

	FunctionDelete
	FunctionDump
	FunctionFlush
	FunctionHelp
	FunctionKill
	FunctionList
	FunctionLoad
	FunctionRestore
	FunctionStats

	ScriptDebug
	ScriptExists
	ScriptFlush
	ScriptHelp
	ScriptKill
	ScriptLoad
	ScriptShow

	SentinelCkQuorum
	SentinelConfig
	SentinelDebug
	SentinelFailover
	SentinelFlushConfig
	SentinelGetMasterAddrByName
	SentinelGetPrimaryAddrByName
	SentinelHelp
	SentinelInfoCache
	SentinelIsMasterDownByAddr
	SentinelIsPrimaryDownByAddr
	SentinelMaster
	SentinelMasters
	SentinelMonitor
	SentinelMyID
	SentinelPendingScripts
	SentinelPrimaries
	SentinelPrimary
	SentinelRemove
	SentinelReplicas
	SentinelReset
	SentinelSentinels
	SentinelSet
	SentinelSimulateFailure
	SentinelSlaves

	DunlinCancel
	DunlinChallenge
	DunlinClaim
	DunlinConfigure
	DunlinEach
	DunlinEffects
	DunlinEmpty
	DunlinExec
	DunlinFetch
	DunlinGather
	DunlinLend
	DunlinCede
	DunlinPublish
	DunlinLevel
	DunlinListen
	DunlinPass
	DunlinAs
	DunlinPeer
	DunlinPipe
	DunlinRelease
	DunlinReport
	DunlinReserve
	DunlinRetry
	DunlinReturn
	DunlinSettings
	DunlinStream
	DunlinTable
	DunlinTake
	DunlinTopics
	DunlinMissed
	DunlinHanded
	DunlinValue
	DunlinWatch
	DunlinWithin

	// NumIDs is one above the highest ID.
	NumIDs
)
