package session

import (
	"math"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// Commands that are for a server with a disk, replicas of its own, several
// databases, modules or developers inside. What already holds is granted, as
// Redis does; the rest is refused with the reason, so that whoever reads the
// message knows that trying again is of no use.

// refuse makes the handler of a command that always gets the same error.
func refuse(text string) handler {
	return func(_ *Server, _ *State, _ [][]byte, dst []byte) ([]byte, Action) {
		return resp.AppendError(dst, text), ActionNone
	}
}

// role answers ROLE: every member answers for itself, see infoReplication.
func role(_ *Server, _ *State, _ [][]byte, dst []byte) ([]byte, Action) {
	dst = resp.AppendArray(dst, 3)
	dst = resp.AppendBulkString(dst, "master")
	dst = resp.AppendInt(dst, 0)
	return resp.AppendArray(dst, 0), ActionNone
}

// lastSave answers LASTSAVE as a Redis that never saved: with its start.
func (s *Server) lastSave(_ *State, _ [][]byte, dst []byte) ([]byte, Action) {
	return resp.AppendInt(dst, s.o.Start.Unix()), ActionNone
}

// replicaOf answers REPLICAOF host port: NO ONE is what holds.
func replicaOf(_ *Server, _ *State, args [][]byte, dst []byte) ([]byte, Action) {
	if equalFold(args[1], "no") && equalFold(args[2], "one") {
		return appendOK(dst), ActionNone
	}
	return resp.AppendError(dst, errReplicaOf), ActionNone
}

// failover answers FAILOVER [options]: nothing is under way, and no replica is
// there that a client could fail over to.
func failover(_ *Server, _ *State, args [][]byte, dst []byte) ([]byte, Action) {
	if len(args) == 2 && equalFold(args[1], "abort") {
		return resp.AppendError(dst, "ERR No failover in progress."), ActionNone
	}
	return resp.AppendError(dst, "ERR FAILOVER requires connected replicas."), ActionNone
}

// swapDB answers SWAPDB a b: the one database can be swapped with itself.
func swapDB(_ *Server, _ *State, args [][]byte, dst []byte) ([]byte, Action) {
	names := [...]string{"first", "second"}
	var db [2]int64
	for i := range db {
		n, ok := resp.ParseInt(args[1+i])
		if !ok || n < math.MinInt32 || n > math.MaxInt32 {
			return resp.AppendError(dst, "ERR invalid "+names[i]+" DB index"), ActionNone
		}
		db[i] = n
	}
	if db != [2]int64{} {
		return resp.AppendError(dst, errDBIndex), ActionNone
	}
	return appendOK(dst), ActionNone
}

// move answers MOVE key db: there is no other database to move to.
func move(_ *Server, _ *State, args [][]byte, dst []byte) ([]byte, Action) {
	n, ok := resp.ParseInt(args[2])
	switch {
	case !ok:
		return resp.AppendError(dst, errNotInteger), ActionNone
	case n < math.MinInt32 || n > math.MaxInt32:
		return resp.AppendError(dst, errNotInt32), ActionNone
	case n == 0:
		return resp.AppendError(dst, "ERR source and destination objects are the same"), ActionNone
	}
	return resp.AppendError(dst, errDBIndex), ActionNone
}

// shutdown answers SHUTDOWN [options].
func shutdown(_ *Server, _ *State, args [][]byte, dst []byte) ([]byte, Action) {
	for _, option := range args[1:] {
		switch lower(option) {
		case "nosave", "save", "now", "force":
		case "abort":
			return resp.AppendError(dst, "ERR No shutdown in progress."), ActionNone
		default:
			return resp.AppendError(dst, errSyntax), ActionNone
		}
	}
	return resp.AppendError(dst, errShutdown), ActionNone
}

// bgSave answers BGSAVE [SCHEDULE].
func bgSave(_ *Server, _ *State, args [][]byte, dst []byte) ([]byte, Action) {
	if len(args) > 2 || len(args) == 2 && !equalFold(args[1], "schedule") {
		return resp.AppendError(dst, errSyntax), ActionNone
	}
	return resp.AppendError(dst, errNoDisk), ActionNone
}

// none answers with an empty array: MODULE LIST.
func none(_ *Server, _ *State, _ [][]byte, dst []byte) ([]byte, Action) {
	return resp.AppendArray(dst, 0), ActionNone
}

// lolwut answers LOLWUT [VERSION n [arguments]] with a flock; its last line is
// the one that Redis shows.
func lolwut(_ *Server, st *State, args [][]byte, dst []byte) ([]byte, Action) {
	if len(args) > 2 && equalFold(args[1], "version") {
		if _, ok := resp.ParseInt(args[2]); !ok {
			return resp.AppendError(dst, errNotInteger), ActionNone
		}
	}
	return resp.AppendVerbatim(dst, st.Version, "txt", flock+"Redis ver. "+RedisVersion+"\n"), ActionNone
}

const flock = "" +
	"            ~v~        v                  \n" +
	"    v   ~v~      v  ~v~    ~v~   v        \n" +
	"  ~v~  v    ~v~    v    v      ~v~    v   \n" +
	"      v  ~v~    v    ~v~    v      ~v~    \n" +
	"    A flock of dunlins: nobody leads.\n\n"
