package session

import (
	"strconv"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// The CLUSTER commands answer although INFO says cluster_enabled:0: who asks
// for the cluster gets it, and who looks at INFO first is spared from treating
// a proxy as one node of many.

func (s *Server) view() View {
	if s.o.Cluster == nil {
		return View{}
	}
	return s.o.Cluster()
}

func clusterKeySlot(_ *Server, _ *State, args [][]byte, dst []byte) ([]byte, Action) {
	return resp.AppendInt(dst, int64(ring.Slot(args[2]))), ActionNone
}

func (s *Server) clusterMyID(_ *State, _ [][]byte, dst []byte) ([]byte, Action) {
	v := s.view()
	id := v.Self
	if v.Alone != nil {
		id = v.Alone.ID
	}
	return resp.AppendBulkString(dst, NodeID(id)), ActionNone
}

func (s *Server) clusterCountKeysInSlot(_ *State, args [][]byte, dst []byte) ([]byte, Action) {
	slot, ok := resp.ParseInt(args[2])
	switch {
	case !ok:
		return resp.AppendError(dst, errNotInteger), ActionNone
	case slot < 0 || slot >= ring.Slots:
		return resp.AppendError(dst, errInvalidSlot), ActionNone
	case s.o.CountKeys == nil:
		return resp.AppendError(dst, errCountKeys), ActionNone
	}
	return resp.AppendInt(dst, s.o.CountKeys(uint16(slot))), ActionNone
}

func (s *Server) clusterSlots(st *State, _ [][]byte, dst []byte) ([]byte, Action) {
	return s.appendTopology(dst, st, command.ClusterSlots, AppendSlots), ActionNone
}

func (s *Server) clusterShards(st *State, _ [][]byte, dst []byte) ([]byte, Action) {
	return s.appendTopology(dst, st, command.ClusterShards, AppendShards), ActionNone
}

func (s *Server) clusterNodes(st *State, _ [][]byte, dst []byte) ([]byte, Action) {
	return s.appendTopology(dst, st, command.ClusterNodes, AppendNodes), ActionNone
}

func (s *Server) clusterInfo(st *State, _ [][]byte, dst []byte) ([]byte, Action) {
	return AppendClusterInfo(dst, st.Version, s.view()), ActionNone
}

type topologyEncoder func(dst []byte, v resp.Version, view View, laddr string) []byte

func (s *Server) appendTopology(dst []byte, st *State, id command.ID, encode topologyEncoder) []byte {
	view := s.view()
	if view.Alone != nil || view.Table == nil {
		return encode(dst, st.Version, view, st.LAddr)
	}
	return append(dst, s.topology.get(view.Table, replyKey{id, st.Version}, func() []byte {
		return encode(nil, st.Version, view, "")
	})...)
}

// AppendSlots encodes CLUSTER SLOTS. laddr is the address at which the asking
// client reached us; here and below it is used for View.Alone only.
func AppendSlots(dst []byte, v resp.Version, view View, laddr string) []byte {
	t := view.topology(laddr)
	dst = resp.AppendArray(dst, len(t.ranges))
	for _, r := range t.ranges {
		n := &t.nodes[r.node]
		dst = resp.AppendArray(dst, 3)
		dst = resp.AppendInt(dst, int64(r.first))
		dst = resp.AppendInt(dst, int64(r.last))
		dst = resp.AppendArray(dst, 4)
		dst = resp.AppendBulkString(dst, n.host)
		dst = resp.AppendInt(dst, int64(n.port))
		dst = resp.AppendBulkString(dst, n.id)
		dst = resp.AppendMap(dst, v, 0) // metadata: no second host name
	}
	return dst
}

// AppendShards encodes CLUSTER SHARDS: a shard is a node with its slots.
func AppendShards(dst []byte, v resp.Version, view View, laddr string) []byte {
	t := view.topology(laddr)
	dst = resp.AppendArray(dst, len(t.nodes))
	for i := range t.nodes {
		n := &t.nodes[i]
		dst = resp.AppendMap(dst, v, 2)
		dst = resp.AppendBulkString(dst, "slots")
		dst = resp.AppendArray(dst, 2*len(n.ranges))
		for _, r := range n.ranges {
			dst = resp.AppendInt(dst, int64(r.first))
			dst = resp.AppendInt(dst, int64(r.last))
		}
		dst = resp.AppendBulkString(dst, "nodes")
		dst = resp.AppendArray(dst, 1)
		dst = n.appendShardNode(dst, v)
	}
	return dst
}

func (n *clusterNode) appendShardNode(dst []byte, v resp.Version) []byte {
	health := "online"
	if !n.online {
		health = "loading"
	}
	dst = resp.AppendMap(dst, v, 7)
	dst = appendPair(dst, "id", n.id)
	dst = resp.AppendBulkString(dst, "port")
	dst = resp.AppendInt(dst, int64(n.port))
	dst = appendPair(dst, "ip", n.host)
	dst = appendPair(dst, "endpoint", n.host)
	dst = appendPair(dst, "role", "master")
	dst = resp.AppendBulkString(dst, "replication-offset")
	dst = resp.AppendInt(dst, 0)
	return appendPair(dst, "health", health)
}

// AppendNodes encodes CLUSTER NODES. The port of the cluster bus is shown as
// 0: gossip is not Redis's bus, and nothing should try to speak to it.
func AppendNodes(dst []byte, v resp.Version, view View, laddr string) []byte {
	t := view.topology(laddr)
	var b []byte
	for i := range t.nodes {
		n := &t.nodes[i]
		b = append(b, n.id...)
		b = append(b, ' ')
		b = append(b, n.host...)
		b = appendField(b, ":", int64(n.port))
		b = append(b, "@0 "...)
		if n.myself {
			b = append(b, "myself,"...)
		}
		b = append(b, "master - 0 0 "...)
		b = strconv.AppendUint(b, t.epoch, 10)
		b = append(b, " connected"...)
		for _, r := range n.ranges {
			b = appendField(b, " ", int64(r.first))
			b = appendField(b, "-", int64(r.last))
		}
		b = append(b, '\n')
	}
	return resp.AppendVerbatim(dst, v, "txt", string(b))
}

// AppendClusterInfo encodes CLUSTER INFO.
func AppendClusterInfo(dst []byte, v resp.Version, view View) []byte {
	t := view.topology("")
	state, assigned, size := "fail", 0, 0
	if view.complete() {
		state = "ok"
	}
	for i := range t.nodes {
		if len(t.nodes[i].ranges) > 0 {
			size++
		}
		for _, r := range t.nodes[i].ranges {
			assigned += r.last - r.first + 1
		}
	}
	var b text
	b.line("cluster_state", state)
	b.number("cluster_slots_assigned", int64(assigned))
	b.number("cluster_slots_ok", int64(assigned))
	b.number("cluster_slots_pfail", 0)
	b.number("cluster_slots_fail", 0)
	b.number("cluster_known_nodes", int64(len(t.nodes)))
	b.number("cluster_size", int64(size))
	b.number("cluster_current_epoch", int64(t.epoch))
	b.number("cluster_my_epoch", int64(t.epoch))
	b.number("cluster_stats_messages_sent", 0)
	b.number("cluster_stats_messages_received", 0)
	b.number("total_cluster_links_buffer_limit_exceeded", 0)
	return resp.AppendVerbatim(dst, v, "txt", string(b))
}
