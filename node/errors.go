package node

import (
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// The texts of Redis 7, which clients compare.
const (
	errCrossSlot = exec.ErrCrossSlot
	errNotServed = member.NotServed
	errNoAuth    = "NOAUTH Authentication required."
)

// Dunlin's own texts, for what Redis does not have.
const (
	errTakingOver       = "TRYAGAIN this node is taking over the partition of that key, try again in a moment"
	errRepliesTooLarge  = "ERR executed, but the replies of the transaction would be too large"
	errBadSecret        = "WRONGPASS the secret of this cluster is another one"
	errNoChallenge      = "WRONGPASS ask for a challenge first"
	errOldPipe          = "ERR a newer generation of this pipe has been opened"
	errBadDatabase      = "ERR Protocol error: no such database"
	errBadPipe          = "ERR cannot open pipe: malformed description"
	errPipeLevel        = "ERR cannot open pipe: its proxy speaks protocol level %d, and this cluster needs %d: upgrade it"
	errBadSettings      = "ERR cannot change settings: malformed, or this node is in no cluster"
	errBadBitmap        = "ERR partitions must be a bitmap of 512 bytes"
	errBadTable         = "ERR cannot read table"
	errPinned           = "ERR database %d is pinned to one node, so clients select it through a proxy"
	errMisplaced        = "TRYAGAIN the proxy does not know yet which databases are pinned, try again"
	errCanceled         = member.Canceled
	errHalfway          = "ERR given up halfway: this node does not serve the partition of the keys any more"
	errNotReached       = "ERR not executed: the transaction was given up, because this node does not serve its partition any more"
	errPartly           = "ERR executed for some of the keys only: this node does not serve the partitions of the others any more"
	errHandingOver      = "TRYAGAIN the node is still handing over what the table has taken from it"
	errOtherNode        = "ERR another node listens here than the one that was named"
	errForeignTable     = "ERR that table is of a lineage that this node does not follow"
	errBadFetch         = "ERR cannot fetch: malformed request, or not on a pipe"
	errBadPublish       = "ERR cannot publish: malformed request, or on a pipe"
	errBadLend          = "ERR cannot lend: malformed request, or on a pipe"
	errBadClaim         = "ERR cannot claim: malformed request, or not on a pipe"
	errBadReturn        = "ERR cannot return: malformed request, or not on a pipe"
	errBadExec          = "ERR cannot execute transaction: malformed, or not of one slot"
	errNoTicket         = "ERR there is no such ticket"
	errServed           = "ERR the partition is served already: what is handed over comes too late"
	errBadListen        = "ERR cannot listen: malformed request, or not on a pipe for that"
	errSubscriberMember = "ERR a pipe does not subscribe: DUNLIN LISTEN does"
	errSubscribeHere    = "ERR this node has no relay, and serves shard channels only: use SSUBSCRIBE, or connect to a proxy"
	errManyChannels     = "ERR the channels take more than 32 MiB: ask for fewer by a pattern"
	errNotAsked         = "ERR not all nodes have said in time which channels they have"
	errManyAsked        = "ERR the channels of a node take more than 16 MiB: ask for fewer by a pattern, or through a proxy"
	errTooManyPatterns  = "ERR too many different patterns: the cluster can have 4096, and fewer that begin with '*' or are long"
	errCostlyChannel    = "ERR the channel's name is too long to be compared with as many patterns as clients have subscribed to"
	errNoTracking       = "ERR CLIENT TRACKING is not possible: there is no memory for it, or too many others track"
	errManyFollowed     = "ERR too many prefixes: all clients together can have 4096, of 256 different lengths"
	errTooManyWaits     = "ERR too many blocking commands wait at this node"
	errBlockingLevel    = "ERR blocking commands need protocol level %d, and this cluster speaks %d: upgrade all members"
	errInternal         = "ERR internal error: the command failed while it was served, see the log of the node"
	errNotEach          = "ERR that command is not executed by partitions"
)
