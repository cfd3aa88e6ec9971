package session

import (
	"github.com/dunlin-cache/dunlin/internal/cluster"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// Handlers that pass the commands of internal/config and internal/cluster on, with the connection
// that asks.

func (s *Server) configGet(st *State, args [][]byte, dst []byte) ([]byte, Action) {
	return s.o.Config.AppendGet(dst, st.Version, args), ActionNone
}

// configSet runs on a proxy's loop, for the proxy's own parameters. A node answers CONFIG SET from a
// goroutine instead, and MULTI does not queue it, because it can wait for every member.
func (s *Server) configSet(_ *State, args [][]byte, dst []byte) ([]byte, Action) {
	return s.o.Config.Set(dst, args), ActionNone
}

func (s *Server) configResetStat(_ *State, _ [][]byte, dst []byte) ([]byte, Action) {
	return s.o.Config.ResetStat(dst), ActionNone
}

func clusterKeySlot(_ *Server, _ *State, args [][]byte, dst []byte) ([]byte, Action) {
	return cluster.AppendKeySlot(dst, args[2]), ActionNone
}

func (s *Server) clusterSlots(st *State, _ [][]byte, dst []byte) ([]byte, Action) {
	return s.o.Cluster.AppendSlots(dst, st.Version, st.LAddr), ActionNone
}

func (s *Server) clusterShards(st *State, _ [][]byte, dst []byte) ([]byte, Action) {
	return s.o.Cluster.AppendShards(dst, st.Version, st.LAddr), ActionNone
}

func (s *Server) clusterNodes(st *State, _ [][]byte, dst []byte) ([]byte, Action) {
	return s.o.Cluster.AppendNodes(dst, st.Version, st.LAddr), ActionNone
}

func (s *Server) clusterInfo(st *State, _ [][]byte, dst []byte) ([]byte, Action) {
	return s.o.Cluster.AppendInfo(dst, st.Version), ActionNone
}

func (s *Server) clusterMyID(_ *State, _ [][]byte, dst []byte) ([]byte, Action) {
	return s.o.Cluster.AppendMyID(dst), ActionNone
}

func (s *Server) clusterReplicas(_ *State, args [][]byte, dst []byte) ([]byte, Action) {
	return s.o.Cluster.AppendReplicas(dst, args[2]), ActionNone
}

// lastSave answers LASTSAVE like a Redis that has never saved: with the time of its start.
func (s *Server) lastSave(_ *State, _ [][]byte, dst []byte) ([]byte, Action) {
	return resp.AppendInt(dst, s.o.Start.Unix()), ActionNone
}
