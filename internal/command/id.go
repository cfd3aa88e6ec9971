package command

// The IDs of the top-level commands, in the order of their groups. Spelled as
// Go spells names; those that a type or a flag has taken end in Cmd.
const (
	// string
	Append ID = iota + 1
	Decr
	DecrBy
	DelEx
	DelIfEq
	Digest
	Get
	GetDel
	GetEx
	GetRange
	GetSet
	Incr
	IncrBy
	IncrByFloat
	IncrEx
	LCS
	MGet
	MSet
	MSetEx
	MSetNX
	PSetEx
	Set
	SetEx
	SetNX
	SetRange
	StrLen
	Substr

	// generic
	Copy
	Del
	Dump
	Exists
	Expire
	ExpireAt
	ExpireTime
	Keys
	Migrate
	Move
	Object
	Persist
	PExpire
	PExpireAt
	PExpireTime
	PTTL
	RandomKey
	Rename
	RenameNX
	Restore
	Scan
	Sort
	SortRO
	Touch
	TTL
	Type
	Unlink
	Wait
	WaitAOF

	// bitmap
	BitCount
	BitField
	BitFieldRO
	BitOp
	BitPos
	GetBit
	SetBit

	// hash
	HDel
	HExists
	HExpire
	HExpireAt
	HExpireTime
	HGet
	HGetAll
	HGetDel
	HGetEx
	HIncrBy
	HIncrByFloat
	HImport
	HKeys
	HLen
	HMGet
	HMSet
	HPersist
	HPExpire
	HPExpireAt
	HPExpireTime
	HPTTL
	HRandField
	HScan
	HSet
	HSetEx
	HSetNX
	HStrLen
	HTTL
	HVals

	// list
	BLMove
	BLMPop
	BLPop
	BRPop
	BRPopLPush
	LIndex
	LInsert
	LLen
	LMove
	LMPop
	LPop
	LPos
	LPush
	LPushX
	LRange
	LRem
	LSet
	LTrim
	RPop
	RPopLPush
	RPush
	RPushX

	// set
	SAdd
	SCard
	SDiff
	SDiffStore
	SInter
	SInterCard
	SInterStore
	SIsMember
	SMembers
	SMIsMember
	SMove
	SPop
	SRandMember
	SRem
	SScan
	SUnion
	SUnionStore

	// sorted-set
	BZMPop
	BZPopMax
	BZPopMin
	ZAdd
	ZCard
	ZCount
	ZDiff
	ZDiffStore
	ZIncrBy
	ZInter
	ZInterCard
	ZInterStore
	ZLexCount
	ZMPop
	ZMScore
	ZPopMax
	ZPopMin
	ZRandMember
	ZRange
	ZRangeByLex
	ZRangeByScore
	ZRangeStore
	ZRank
	ZRem
	ZRemRangeByLex
	ZRemRangeByRank
	ZRemRangeByScore
	ZRevRange
	ZRevRangeByLex
	ZRevRangeByScore
	ZRevRank
	ZScan
	ZScore
	ZUnion
	ZUnionStore

	// stream
	XAck
	XAckDel
	XAdd
	XAutoClaim
	XClaim
	XDel
	XDelEx
	XGroup
	XInfo
	XLen
	XPending
	XRange
	XRead
	XReadGroup
	XRevRange
	XSetID
	XTrim

	// geo
	GeoAdd
	GeoDist
	GeoHash
	GeoPos
	GeoRadius
	GeoRadiusByMember
	GeoRadiusByMemberRO
	GeoRadiusRO
	GeoSearch
	GeoSearchStore

	// hyperloglog
	PFAdd
	PFCount
	PFDebug
	PFMerge
	PFSelfTest

	// connection
	Auth
	Client
	Echo
	Hello
	Ping
	Quit
	Reset
	Select

	// server
	ACL
	BGRewriteAOF
	BGSave
	CommandCmd
	Config
	DBSize
	Debug
	Failover
	FlushAll
	FlushDB
	HotKeys
	Info
	LastSave
	Latency
	Lolwut
	Memory
	Module
	Monitor
	PSync
	ReplConf
	ReplicaOf
	RestoreAsking
	Role
	Save
	Shutdown
	SlaveOf
	SlowLog
	SwapDB
	Sync
	Time

	// cluster
	Asking
	Cluster
	ClusterScan
	ReadOnlyCmd
	ReadWriteCmd

	// pubsub
	PSubscribe
	Publish
	PubSubCmd
	PUnsubscribe
	SPublish
	SSubscribe
	Subscribe
	SUnsubscribe
	Unsubscribe

	// scripting
	Eval
	EvalSha
	EvalShaRO
	EvalRO
	FCall
	FCallRO
	Function
	Script

	// transactions
	Discard
	Exec
	Multi
	Unwatch
	Watch

	// sentinel
	Sentinel

	// internal
	Dunlin

	numTop // one above the last of them
)
