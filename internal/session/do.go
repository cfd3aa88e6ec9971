package session

import (
	"cmp"
	"strings"

	"github.com/dunlin-cache/dunlin/internal/about"
	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// Action is what the caller must do besides sending the reply.
type Action uint8

const (
	ActionNone            Action = iota
	ActionCloseAfterReply        // send the queued replies, then close: QUIT, too many wrong passwords
	ActionClose                  // close at once, without a reply: an HTTP request
	ActionReset                  // RESET: the State is reset; drop the rest of the session
	ActionVersionChanged         // HELLO: State.Version has changed
	ActionClientList             // CLIENT LIST: nothing appended; visit all loops with NewEveryone
	ActionClientKill             // CLIENT KILL: the same
	ActionPause                  // CLIENT PAUSE, UNPAUSE: the same, by Pauser.Obey
	ActionClientUnblock          // CLIENT UNBLOCK: the same
	ActionDelay                  // send the reply after State.Delay, see waiting.go
	ActionTracking               // CLIENT TRACKING: State.Tracking has changed
	ActionMonitor                // MONITOR: show the connection what all connections do, until RESET
)

// Refuse appends the error for a request that must not be executed. It checks in Redis's order:
// unknown or unbuilt command or subcommand, wrong number of arguments, no authentication. c is what
// command.Lookup found for args[0], or nil; args must not be empty.
//
// A hot path skips Refuse when c is built, has no subcommands, fits ArityOK, and
// State.Authenticated is true.
//
// A refused command is not queued, and EXEC then aborts the transaction.
func (s *Server) Refuse(st *State, c *command.Command, args [][]byte, dst []byte) (out []byte, a Action, refused bool) {
	if c == nil && IsHTTP(args) {
		return dst, ActionClose, true
	}
	var scratch [256]byte
	start := len(dst)
	row, refusal := command.Resolve(scratch[:0], args)
	if row == nil {
		dst, refused = resp.AppendErrorBytes(dst, refusal), true
	} else if text := cmp.Or(s.CheckAuth(st, row), refuseMonitor(st, row), st.refuseListening(row)); text != "" {
		dst, refused = resp.AppendError(dst, text), true
	}
	if refused && st.guest != nil {
		if st.refusals++; st.refusals > maxRefusals {
			a = ActionCloseAfterReply
		}
	}
	switch {
	case refused && c != nil && c.ID == command.Exec:
		// The transaction ends, and the error says so, whatever the refusal was.
		st.EndTransaction()
		text, _ := strings.CutPrefix(string(dst[start+1:len(dst)-2]), "ERR ")
		dst = resp.AppendError(dst[:start], errExecRefused+text)
	case refused && st.Multi:
		st.Tx.failed = true
	}
	return dst, a, refused
}

// IsHTTP reports whether a request is the start of an HTTP request: a web page makes a browser send
// commands to an address that the page must not reach. Close the connection before the body, which
// would contain the commands.
func IsHTTP(args [][]byte) bool {
	return command.EqualFold(args[0], "post") || command.EqualFold(args[0], "host:")
}

// handler answers one command, whose number of arguments has been checked.
type handler func(s *Server, st *State, args [][]byte, dst []byte) ([]byte, Action)

// handlers has the commands that need a connection or the state that connections share; all other
// entries are nil. Commands that need neither are in about.Answers.
var handlers = [command.NumIDs]handler{
	command.Ping:   ping,
	command.Echo:   echo,
	command.Hello:  (*Server).hello,
	command.Auth:   (*Server).auth,
	command.Select: (*Server).selectDB,
	command.SwapDB: (*Server).swapDB,
	command.Quit:   quit,
	command.Reset:  reset,
	command.Time:   timeNow,

	command.Multi:   multi,
	command.Discard: discard,
	command.Unwatch: unwatch,

	command.ReadOnlyCmd:  readOnly,
	command.ReadWriteCmd: readWrite,
	command.Asking:       asking,

	command.ClientID:       clientID,
	command.ClientInfo:     clientInfo,
	command.ClientList:     clientList,
	command.ClientKill:     clientKill,
	command.ClientPause:    clientPause,
	command.ClientUnpause:  clientUnpause,
	command.ClientSetName:  clientSetName,
	command.ClientGetName:  clientGetName,
	command.ClientSetInfo:  clientSetInfo,
	command.ClientCapa:     clientCapa,
	command.ClientReply:    clientReply,
	command.ClientNoEvict:  clientNoEvict,
	command.ClientNoTouch:  clientNoTouch,
	command.ClientTracking: clientTracking,
	command.ClientCaching:  clientCaching,

	command.ClientGetRedir:     clientGetRedir,
	command.ClientTrackingInfo: clientTrackingInfo,
	command.ClientUnblock:      clientUnblock,

	command.ClientMaintNotifications: clientMaintNotifications,

	command.ACLWhoAmI:  aclWhoAmI,
	command.ACLUsers:   aclUsers,
	command.ACLList:    (*Server).aclList,
	command.ACLGetUser: (*Server).aclGetUser,
	command.ACLCat:     aclCat,
	command.ACLDryRun:  aclDryRun,
	command.ACLGenPass: aclGenPass,
	command.ACLLog:     aclLog,
	command.ACLDelUser: aclDelUser,

	command.ConfigGet:       (*Server).configGet,
	command.ConfigSet:       (*Server).configSet,
	command.ConfigResetStat: (*Server).configResetStat,

	command.ClusterKeySlot:   clusterKeySlot,
	command.ClusterSlots:     (*Server).clusterSlots,
	command.ClusterShards:    (*Server).clusterShards,
	command.ClusterNodes:     (*Server).clusterNodes,
	command.ClusterInfo:      (*Server).clusterInfo,
	command.ClusterMyID:      (*Server).clusterMyID,
	command.ClusterMyShardID: (*Server).clusterMyID,
	command.ClusterReplicas:  (*Server).clusterReplicas,
	command.ClusterSlaves:    (*Server).clusterReplicas,

	command.SentinelCkQuorum:             sentinelAnswer(sentinelQuorum),
	command.SentinelFailover:             sentinelAnswer(sentinelFailover),
	command.SentinelGetMasterAddrByName:  sentinelAnswer(sentinelAddr),
	command.SentinelGetPrimaryAddrByName: sentinelAnswer(sentinelAddr),
	command.SentinelHelp:                 sentinelAnswer(sentinelHelp),
	command.SentinelMaster:               sentinelAnswer(sentinelMaster),
	command.SentinelMasters:              sentinelAnswer(sentinelMasters),
	command.SentinelMyID:                 sentinelAnswer(sentinelMyID),
	command.SentinelPrimaries:            sentinelAnswer(sentinelMasters),
	command.SentinelPrimary:              sentinelAnswer(sentinelMaster),
	command.SentinelReplicas:             sentinelAnswer(sentinelNone),
	command.SentinelSentinels:            sentinelAnswer(sentinelNone),
	command.SentinelSlaves:               sentinelAnswer(sentinelNone),

	command.WaitAOF:  waitAOF,
	command.Monitor:  monitor,
	command.LastSave: (*Server).lastSave,
	command.Debug:    (*Server).debug,
}

// Do answers c if c is in handlers or about.Answers. Otherwise ok is false and nothing is appended.
// c may be a container or already the subcommand's row. Refuse must have let the request pass, or c
// must plainly fit.
func (s *Server) Do(st *State, c *command.Command, args [][]byte, dst []byte) (out []byte, a Action, ok bool) {
	if c.Subs != nil && len(args) > 1 {
		if sub := c.Sub(args[1]); sub != nil {
			c = sub
		}
	}
	if h := handlers[c.ID]; h != nil {
		st.LastCmd = c.ID
		out, a = h(s, st, args, dst)
		return out, a, true
	}
	if answer := about.Answers[c.ID]; answer != nil {
		st.LastCmd = c.ID
		return answer(dst, st.Version, args), ActionNone, true
	}
	return dst, ActionNone, false
}
