package session

import (
	"strconv"
	"strings"

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
var ErrMixedConfig = "ERR CONFIG SET failed - " + strings.Join(nodeParameters(), ", ") + " are the nodes': set them apart from others"

// NodeSettingsQuestion is the request whose reply NodeSettings.Add takes.
var NodeSettingsQuestion = func() [][]byte {
	question := [][]byte{[]byte("CONFIG"), []byte("GET")}
	for _, name := range nodeParameters() {
		question = append(question, []byte(name))
	}
	return question
}()

func nodeParameters() (names []string) {
	for i := range parameters {
		if parameters[i].nodes {
			names = append(names, parameters[i].name)
		}
	}
	return names
}

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
	values map[string]string // by name
}

// Add takes a node's reply in; false if it is not one. reply is not kept. Of numbers that differ the smallest is shown, for
// that limits first; of other values that they do.
func (n *NodeSettings) Add(reply []byte) bool {
	count, at, ok := resp.DecodeArray(reply)
	if !ok || count%2 != 0 {
		return false
	}
	if n.values == nil {
		n.values = make(map[string]string)
	}
	var scan resp.Scanner
	word := func() (text string, ok bool) {
		if scan.Scan(reply[at:]) != resp.Done {
			return "", false
		}
		b, ok := resp.DecodeBulk(reply[at : at+scan.Len()])
		at += scan.Len()
		return string(b), ok
	}
	for range count / 2 {
		name, ok1 := word()
		value, ok2 := word()
		if !ok1 || !ok2 {
			return false
		}
		if have, known := n.values[name]; known {
			value = mergeSetting(have, value)
		}
		n.values[name] = value
	}
	return true
}

func mergeSetting(a, b string) string {
	x, errX := strconv.ParseInt(a, 10, 64)
	y, errY := strconv.ParseInt(b, 10, 64)
	switch {
	case errX == nil && errY == nil:
		return strconv.FormatInt(min(x, y), 10)
	case a != b:
		return mixedPolicy
	}
	return a
}

// AppendConfig answers CONFIG GET with the nodes' settings in place of this process's; args is the whole request.
func (s *Server) AppendConfig(dst []byte, v resp.Version, args [][]byte, n *NodeSettings) []byte {
	return s.appendConfig(dst, v, args[2:], func(p *parameter) string {
		if value, known := n.values[p.name]; known && p.nodes {
			return value
		}
		return s.parameterValue(p)
	})
}
