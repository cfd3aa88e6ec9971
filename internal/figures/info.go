package figures

import (
	"slices"
	"strings"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// Info is what INFO shows beyond what the Process knows.
type Info struct {
	// Counters are a node's own, or at a proxy the nodes' sum, in which the proxy's own replace
	// those about clients.
	Counters
	Calls    *Calls        // nil: sections about calls are empty
	Nodes    int           // in the present table
	Sections []InfoSection // shown after the standard ones
}

// InfoSection is an additional section of INFO. It is shown by default and
// when asked for by its name.
type InfoSection struct {
	Name  string // as in the heading
	Lines []InfoLine
}

// InfoLine is one "name:value".
type InfoLine struct{ Name, Value string }

// section is one standard part of INFO.
type section struct {
	name     string // as in the heading
	onDemand bool   // shown by its name and by "all", not by default
	byNodes  bool   // shows counters, for which a proxy must ask the nodes
	calls    bool   // shows Info.Calls, for which a proxy must ask the nodes too
	write    func(p *Process, t *text, in *Info)
}

var sections = []section{
	{name: "Server", write: (*Process).infoServer},
	{name: "Clients", write: (*Process).infoClients},
	{name: "Memory", byNodes: true, write: (*Process).infoMemory},
	{name: "Persistence", write: (*Process).infoPersistence},
	{name: "Stats", byNodes: true, write: (*Process).infoStats},
	{name: "Replication", write: (*Process).infoReplication},
	{name: "CPU", write: (*Process).infoCPU},
	{name: "Modules", write: infoNothing},
	{name: "Commandstats", onDemand: true, byNodes: true, calls: true, write: (*Process).infoCommandStats},
	{name: "Errorstats", byNodes: true, calls: true, write: (*Process).infoErrorStats},
	{name: "Latencystats", onDemand: true, byNodes: true, calls: true, write: (*Process).infoLatencyStats},
	{name: "Cluster", write: (*Process).infoCluster},
	{name: "Keyspace", byNodes: true, write: (*Process).infoKeyspace},
}

// wanted is the set of sections that a request names.
type wanted struct {
	names       []string // in lower case
	normal, all bool
}

// maxSectionName is more than the name of any section has, in bytes. A longer one is not copied.
const maxSectionName = 64

func parseSections(names [][]byte) wanted {
	w := wanted{normal: len(names) == 0}
	for _, name := range names {
		if len(name) > maxSectionName {
			continue
		}
		switch n := strings.ToLower(string(name)); n {
		case "default":
			w.normal = true
		case "all", "everything":
			w.all = true
		default:
			w.names = append(w.names, n)
		}
	}
	return w
}

func (w *wanted) has(name string, onDemand bool) bool {
	return w.all || w.normal && !onDemand || slices.Contains(w.names, strings.ToLower(name))
}

// AppendInfo encodes the reply to INFO with the section names of the request
// (args[1:]): a verbatim string in RESP3, a bulk string in RESP2.
func (p *Process) AppendInfo(dst []byte, v resp.Version, names [][]byte, in Info) []byte {
	w := parseSections(names)
	t := make(text, 0, 6<<10)
	for i := range sections {
		if sec := &sections[i]; w.has(sec.name, sec.onDemand) {
			t.heading(sec.name)
			sec.write(p, &t, &in)
		}
	}
	for _, extra := range in.Sections {
		if !w.has(extra.Name, false) {
			continue
		}
		t.heading(extra.Name)
		for _, l := range extra.Lines {
			t.line(l.Name, l.Value)
		}
	}
	return resp.AppendVerbatim(dst, v, "txt", string(t))
}

// InfoNeedsNodes reports whether the request asks for a section that shows the nodes' counters. A
// proxy must answer other sections (INFO server) without asking nodes, because clients that connect
// while nodes are away ask for them.
func InfoNeedsNodes(names [][]byte) bool {
	return wantsSection(names, func(sec *section) bool { return sec.byNodes })
}

// InfoNeedsCalls reports whether the request asks for a section that shows Info.Calls.
func InfoNeedsCalls(names [][]byte) bool {
	return wantsSection(names, func(sec *section) bool { return sec.calls })
}

func wantsSection(names [][]byte, is func(*section) bool) bool {
	w := parseSections(names)
	for i := range sections {
		if sec := &sections[i]; is(sec) && w.has(sec.name, sec.onDemand) {
			return true
		}
	}
	return false
}
