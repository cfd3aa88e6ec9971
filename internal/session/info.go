package session

import (
	"slices"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// Info is what INFO shows beyond what the Server knows itself.
type Info struct {
	Counters               // a node: its own. A proxy: the nodes' sum, with what concerns clients replaced by its own
	Nodes    int           // in the cluster, by the present table
	Sections []InfoSection // after the standard ones
}

// InfoSection is an additional section of INFO. It is shown by default and
// when asked for by its name.
type InfoSection struct {
	Name  string // as in the heading
	Lines []InfoLine
}

// InfoLine is one "name:value".
type InfoLine struct{ Name, Value string }

// section is one standard part of INFO. The sets to which it belongs are those
// of Redis: everything ⊃ all ⊃ default.
type section struct {
	name     string // as in the heading
	inAll    bool
	byNodes  bool // shows what a proxy must ask its nodes for
	inNormal bool
	write    func(s *Server, t *text, in *Info)
}

var sections = []section{
	{name: "Server", inAll: true, inNormal: true, write: (*Server).infoServer},
	{name: "Clients", inAll: true, inNormal: true, write: (*Server).infoClients},
	{name: "Memory", inAll: true, inNormal: true, byNodes: true, write: (*Server).infoMemory},
	{name: "Persistence", inAll: true, inNormal: true, write: (*Server).infoPersistence},
	{name: "Stats", inAll: true, inNormal: true, byNodes: true, write: (*Server).infoStats},
	{name: "Replication", inAll: true, inNormal: true, write: (*Server).infoReplication},
	{name: "CPU", inAll: true, inNormal: true, write: (*Server).infoCPU},
	{name: "Modules", write: infoNothing},
	{name: "Commandstats", inAll: true, write: infoNothing},
	{name: "Errorstats", inAll: true, inNormal: true, write: infoNothing},
	{name: "Latencystats", inAll: true, write: infoNothing},
	{name: "Cluster", inAll: true, inNormal: true, write: (*Server).infoCluster},
	{name: "Keyspace", inAll: true, inNormal: true, byNodes: true, write: (*Server).infoKeyspace},
}

// wanted is which sections a request names.
type wanted struct {
	names                   []string
	normal, all, everything bool
}

func parseSections(names [][]byte) wanted {
	w := wanted{normal: len(names) == 0}
	for _, name := range names {
		switch n := lower(name); n {
		case "default":
			w.normal = true
		case "all":
			w.all = true
		case "everything":
			w.everything = true
		default:
			w.names = append(w.names, n)
		}
	}
	return w
}

func (w *wanted) has(sec *section) bool {
	return w.everything || w.all && sec.inAll || (w.normal || w.all) && sec.inNormal ||
		slices.Contains(w.names, lower([]byte(sec.name)))
}

func (w *wanted) hasExtra(name string) bool {
	return w.everything || w.all || w.normal || slices.Contains(w.names, lower([]byte(name)))
}

// AppendInfo encodes the reply to INFO with the section names of the request
// (args[1:]): a verbatim string in RESP3, a bulk string in RESP2.
func (s *Server) AppendInfo(dst []byte, v resp.Version, names [][]byte, in Info) []byte {
	w := parseSections(names)
	t := make(text, 0, 6<<10)
	for i := range sections {
		if sec := &sections[i]; w.has(sec) {
			t.heading(sec.name)
			sec.write(s, &t, &in)
		}
	}
	for _, extra := range in.Sections {
		if !w.hasExtra(extra.Name) {
			continue
		}
		t.heading(extra.Name)
		for _, l := range extra.Lines {
			t.line(l.Name, l.Value)
		}
	}
	return resp.AppendVerbatim(dst, v, "txt", string(t))
}

// InfoNeedsNodes tells whether a section that shows the nodes' counters is
// asked for. A proxy may answer others (INFO server) without asking them: it
// must when a client connects while nodes are away.
func InfoNeedsNodes(names [][]byte) bool {
	w := parseSections(names)
	for i := range sections {
		if sections[i].byNodes && w.has(&sections[i]) {
			return true
		}
	}
	return false
}
