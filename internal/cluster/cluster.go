package cluster

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// Server answers the CLUSTER commands of one process.
type Server struct {
	view  func() View
	cache topologyCache
}

// New returns a Server. view returns the present cluster; nil: there is no table.
func New(view func() View) *Server {
	if view == nil {
		view = func() View { return View{} }
	}
	return &Server{view: view}
}

// NodeID returns the id by which CLUSTER commands identify a member. Clients of Redis Cluster
// expect 40 hexadecimal digits that survive a restart, so it is a digest of the stable member id,
// without the boot time.
func NodeID(memberID string) string {
	sum := sha1.Sum([]byte(memberID))
	return hex.EncodeToString(sum[:])
}

// AppendKeySlot answers CLUSTER KEYSLOT key.
func AppendKeySlot(dst, key []byte) []byte { return resp.AppendInt(dst, int64(ring.Slot(key))) }

// AppendMyID answers CLUSTER MYID, and MYSHARDID: each node is a shard of its own.
func (s *Server) AppendMyID(dst []byte) []byte {
	v := s.view()
	id := v.Self
	if v.Alone != nil {
		id = v.Alone.ID
	}
	return resp.AppendBulkString(dst, NodeID(id))
}

// AppendReplicas answers CLUSTER REPLICAS id: no node is shown as the replica of another.
func (s *Server) AppendReplicas(dst, id []byte) []byte {
	for _, n := range s.view().topology("").nodes {
		if n.id == string(id) {
			return resp.AppendArray(dst, 0)
		}
	}
	return resp.AppendError(dst, "ERR Unknown node "+command.Cut(id))
}

// AppendSlots answers CLUSTER SLOTS. laddr is the host:port at which the asking client reached this
// process; here and below it matters for View.Alone only.
func (s *Server) AppendSlots(dst []byte, v resp.Version, laddr string) []byte {
	return s.appendCached(dst, v, laddr, command.ClusterSlots, appendSlots)
}

// AppendShards answers CLUSTER SHARDS.
func (s *Server) AppendShards(dst []byte, v resp.Version, laddr string) []byte {
	return s.appendCached(dst, v, laddr, command.ClusterShards, appendShards)
}

// AppendNodes answers CLUSTER NODES.
func (s *Server) AppendNodes(dst []byte, v resp.Version, laddr string) []byte {
	return s.appendCached(dst, v, laddr, command.ClusterNodes, appendNodes)
}

// AppendInfo answers CLUSTER INFO.
func (s *Server) AppendInfo(dst []byte, v resp.Version) []byte { return appendInfo(dst, v, s.view()) }

type encoder func(dst []byte, v resp.Version, view View, laddr string) []byte

func (s *Server) appendCached(dst []byte, v resp.Version, laddr string, id command.ID, encode encoder) []byte {
	view := s.view()
	if view.Alone != nil || view.Table == nil {
		return encode(dst, v, view, laddr)
	}
	return append(dst, s.cache.get(view.Table, replyKey{id, v}, func() []byte {
		return encode(nil, v, view, "")
	})...)
}

func appendSlots(dst []byte, v resp.Version, view View, laddr string) []byte {
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

// appendShards lists each node with its slots as a shard.
func appendShards(dst []byte, v resp.Version, view View, laddr string) []byte {
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
	dst = resp.AppendBulkStrings(dst, "id", n.id)
	dst = resp.AppendBulkString(dst, "port")
	dst = resp.AppendInt(dst, int64(n.port))
	dst = resp.AppendBulkStrings(dst, "ip", n.host)
	dst = resp.AppendBulkStrings(dst, "endpoint", n.host)
	dst = resp.AppendBulkStrings(dst, "role", "master")
	dst = resp.AppendBulkString(dst, "replication-offset")
	dst = resp.AppendInt(dst, 0)
	return resp.AppendBulkStrings(dst, "health", health)
}

// appendNodes shows the port of the cluster bus as 0: gossip is not Redis's bus, and nobody should
// try to connect to it.
func appendNodes(dst []byte, v resp.Version, view View, laddr string) []byte {
	t := view.topology(laddr)
	var b []byte
	for i := range t.nodes {
		n := &t.nodes[i]
		b = fmt.Appendf(b, "%s %s:%d@0 ", n.id, n.host, n.port)
		if n.myself {
			b = append(b, "myself,"...)
		}
		b = append(b, "master - 0 0 "...)
		b = strconv.AppendUint(b, t.epoch, 10)
		b = append(b, " connected"...)
		for _, r := range n.ranges {
			b = strconv.AppendInt(append(b, ' '), int64(r.first), 10)
			b = strconv.AppendInt(append(b, '-'), int64(r.last), 10)
		}
		b = append(b, '\n')
	}
	return resp.AppendVerbatim(dst, v, "txt", string(b))
}

func appendInfo(dst []byte, v resp.Version, view View) []byte {
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
	text := fmt.Sprintf("cluster_state:%s\r\ncluster_slots_assigned:%d\r\ncluster_slots_ok:%[2]d\r\n"+
		"cluster_slots_pfail:0\r\ncluster_slots_fail:0\r\ncluster_known_nodes:%d\r\ncluster_size:%d\r\n"+
		"cluster_current_epoch:%d\r\ncluster_my_epoch:%[5]d\r\ncluster_stats_messages_sent:0\r\n"+
		"cluster_stats_messages_received:0\r\ntotal_cluster_links_buffer_limit_exceeded:0\r\n",
		state, assigned, len(t.nodes), size, t.epoch)
	return resp.AppendVerbatim(dst, v, "txt", text)
}
