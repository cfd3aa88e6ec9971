package session

import "github.com/dunlin-cache/dunlin/internal/resp"

// Info is what INFO shows beyond what the Server knows itself.
type Info struct {
	Counters               // node: its own. proxy: the nodes' sum, with the client-facing ones replaced by its own
	Nodes    int           // nodes whose counters are in the sum
	Sections []InfoSection // role-specific ones, after the standard sections
}

// InfoSection is an additional section of INFO.
type InfoSection struct {
	Name  string // as in the heading, e.g. "Dunlin"
	Lines []InfoLine
}

// InfoLine is one "name:value".
type InfoLine struct{ Name, Value string }

// AppendInfo encodes the reply to INFO with the section names of the request
// (args[1:]): a verbatim string in RESP3, a bulk in RESP2.
func (s *Server) AppendInfo(dst []byte, v resp.Version, sections [][]byte, in Info) []byte {
	return dst
}

// InfoNeedsNodes tells whether a section that shows nodes' counters is asked
// for. A proxy may answer the others (INFO server) without asking the nodes.
func InfoNeedsNodes(sections [][]byte) bool { return true }
