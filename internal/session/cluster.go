package session

import (
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// View is the cluster as one member shows it to clients of Redis Cluster.
type View struct {
	Table *ring.Table // nil: no table yet
	Self  string      // ring.Member.ID of this process
	Alone *Endpoint   // set by a proxy: it lists itself as the one node with all slots
}

// Endpoint is where clients find the member that is listed alone.
type Endpoint struct {
	ID   string // ring.Member.ID
	Host string // "" = the address at which the asking client reached us
	Port int    // 0 = the port at which the asking client reached us
}

// NodeID is the 40-digit id by which CLUSTER and HELLO name a member: clients
// of Redis Cluster check the length.
func NodeID(memberID string) string { return "" }

// AppendSlots encodes CLUSTER SLOTS. laddr is the address at which the asking
// client reached us; here and below it is used for View.Alone only.
func AppendSlots(dst []byte, v resp.Version, view View, laddr string) []byte { return dst }

// AppendShards encodes CLUSTER SHARDS.
func AppendShards(dst []byte, v resp.Version, view View, laddr string) []byte { return dst }

// AppendNodes encodes CLUSTER NODES.
func AppendNodes(dst []byte, v resp.Version, view View, laddr string) []byte { return dst }

// AppendClusterInfo encodes CLUSTER INFO.
func AppendClusterInfo(dst []byte, v resp.Version, view View) []byte { return dst }
