package session

import (
	"strconv"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// Parameters that are the nodes': a proxy shows those of its nodes, and sets them on all.

// NodesConfig is what a proxy does with a CONFIG command.
type NodesConfig uint8

const (
	ConfigLocal   NodesConfig = iota // Do answers it
	ConfigShow                       // ask every node for NodeSettingsQuestion, then AppendConfig
	ConfigSetAll                     // send it to every node
	ConfigRefused                    // it names parameters of both kinds: ErrMixedConfig
)

// ErrMixedConfig is the reply to a CONFIG SET that could not be done as a whole or not at all.
const ErrMixedConfig = "ERR CONFIG SET failed - maxmemory and maxmemory-policy are the nodes': set them apart from others"

// NodeSettingsQuestion is the request whose reply NodeSettings.Add takes.
var NodeSettingsQuestion = [][]byte{[]byte("CONFIG"), []byte("GET"), []byte("maxmemory"), []byte("maxmemory-policy")}

// ConfigForNodes says what a proxy does with a request that Refuse let pass and whose command is CONFIG.
func ConfigForNodes(args [][]byte) NodesConfig {
	row, _ := command.Resolve(nil, args)
	switch {
	case row == nil:
	case row.ID == command.ConfigGet:
		for i := range parameters {
			if p := &parameters[i]; p.nodes && matchesAny(args[2:], p.name) {
				return ConfigShow
			}
		}
	case row.ID == command.ConfigSet:
		return setForNodes(args[2:])
	}
	return ConfigLocal
}

func setForNodes(pairs [][]byte) NodesConfig {
	theirs, others := 0, 0
	for i := 0; i < len(pairs); i += 2 {
		if p := findParameter(pairs[i]); p != nil && p.nodes {
			theirs++
		} else {
			others++
		}
	}
	switch {
	case theirs == 0:
		return ConfigLocal
	case others > 0:
		return ConfigRefused
	}
	return ConfigSetAll
}

// NodeSettings are those parameters, gathered from nodes.
type NodeSettings struct {
	nodes     int
	maxMemory int64  // the smallest
	policy    string // mixedPolicy if they differ
}

// Add takes a node's reply in; false if it is not one. reply is not kept.
func (n *NodeSettings) Add(reply []byte) bool {
	count, at, ok := resp.DecodeArray(reply)
	if !ok || count != 4 {
		return false
	}
	var words [4]string
	var scan resp.Scanner
	for i := range words {
		if scan.Scan(reply[at:]) != resp.Done {
			return false
		}
		word, ok := resp.DecodeBulk(reply[at : at+scan.Len()])
		if !ok {
			return false
		}
		words[i] = string(word)
		at += scan.Len()
	}
	limit, err := strconv.ParseInt(words[1], 10, 64)
	if err != nil || words[0] != "maxmemory" || words[2] != "maxmemory-policy" {
		return false
	}
	if n.nodes == 0 || limit < n.maxMemory {
		n.maxMemory = limit
	}
	if n.nodes > 0 && n.policy != words[3] {
		words[3] = mixedPolicy
	}
	n.policy = words[3]
	n.nodes++
	return true
}

// AppendConfig answers CONFIG GET with the nodes' settings in place of this process's; args is the whole request.
func (s *Server) AppendConfig(dst []byte, v resp.Version, args [][]byte, n *NodeSettings) []byte {
	return s.appendConfig(dst, v, args[2:], func(p *parameter) string {
		switch {
		case n.nodes > 0 && p.name == "maxmemory":
			return strconv.FormatInt(n.maxMemory, 10)
		case n.nodes > 0 && p.name == "maxmemory-policy":
			return n.policy
		}
		return s.parameterValue(p)
	})
}
