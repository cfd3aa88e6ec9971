package session

import (
	"strconv"

	"github.com/dunlin-cache/dunlin/internal/about"
	"github.com/dunlin-cache/dunlin/internal/cluster"
	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// Sentinel is what a proxy tells clients that look for a primary with Redis Sentinel. Whatever name they
// ask for, the proxy is the primary, without replicas, and the only sentinel. It never names another
// primary: +switch-master can be subscribed to, and nothing is published there.
type Sentinel struct {
	ID    string   // ring.Member.ID of the proxy
	Names []string // of the primaries that SENTINEL MASTERS lists
	// Addr returns where clients find the proxy that they have asked at laddr.
	Addr func(laddr string) (host string, port int)
}

// downAfter and failoverTimeout are Redis's defaults, in milliseconds.
const downAfter, failoverTimeout = 30_000, 180_000

const (
	errNoReplica = "NOGOODSLAVE No suitable replica to promote"
	ckQuorum     = "OK 1 usable Sentinels. Quorum and failover authorization can be reached"
)

// sentinelAnswer makes the handler of a SENTINEL command. It is known to connections that were accepted
// for it only: StackExchange.Redis asks every server for SENTINEL MASTERS, and takes one that answers
// for nothing but a sentinel.
func sentinelAnswer(answer func(s *Sentinel, st *State, args [][]byte, dst []byte) []byte) handler {
	return func(s *Server, st *State, args [][]byte, dst []byte) ([]byte, Action) {
		if !st.Sentinel {
			return resp.AppendErrorBytes(dst, command.AppendUnknown(nil, args)), ActionNone
		}
		return answer(s.o.Sentinel, st, args, dst), ActionNone
	}
}

func sentinelAddr(s *Sentinel, st *State, _ [][]byte, dst []byte) []byte {
	host, port := s.Addr(st.LAddr)
	return resp.AppendBulkStrings(resp.AppendArray(dst, 2), host, strconv.Itoa(port))
}

func sentinelMaster(s *Sentinel, st *State, args [][]byte, dst []byte) []byte {
	return s.appendMaster(dst, st, string(args[2]))
}

func sentinelMasters(s *Sentinel, st *State, _ [][]byte, dst []byte) []byte {
	dst = resp.AppendArray(dst, len(s.Names))
	for _, name := range s.Names {
		dst = s.appendMaster(dst, st, name)
	}
	return dst
}

// appendMaster appends the proxy as a sentinel describes a primary that is well.
func (s *Sentinel) appendMaster(dst []byte, st *State, name string) []byte {
	host, port := s.Addr(st.LAddr)
	fields := []string{
		"name", name, "ip", host, "port", strconv.Itoa(port), "runid", cluster.NodeID(s.ID), "flags", "master",
		"link-pending-commands", "0", "link-refcount", "1", "last-ping-sent", "0", "last-ok-ping-reply", "0",
		"last-ping-reply", "0", "down-after-milliseconds", strconv.Itoa(downAfter), "info-refresh", "0",
		"role-reported", "master", "role-reported-time", "0", "config-epoch", "0", "num-slaves", "0",
		"num-other-sentinels", "0", "quorum", "1", "failover-timeout", strconv.Itoa(failoverTimeout),
		"parallel-syncs", "1",
	}
	return resp.AppendBulkStrings(resp.AppendMap(dst, st.Version, len(fields)/2), fields...)
}

// sentinelNone lists replicas, or other sentinels.
func sentinelNone(_ *Sentinel, _ *State, _ [][]byte, dst []byte) []byte {
	return resp.AppendArray(dst, 0)
}

func sentinelMyID(s *Sentinel, _ *State, _ [][]byte, dst []byte) []byte {
	return resp.AppendBulkString(dst, cluster.NodeID(s.ID))
}

func sentinelQuorum(_ *Sentinel, _ *State, _ [][]byte, dst []byte) []byte {
	return resp.AppendSimple(dst, ckQuorum)
}

func sentinelFailover(_ *Sentinel, _ *State, _ [][]byte, dst []byte) []byte {
	return resp.AppendError(dst, errNoReplica)
}

func sentinelHelp(_ *Sentinel, st *State, args [][]byte, dst []byte) []byte {
	return about.SentinelHelp(dst, st.Version, args)
}
