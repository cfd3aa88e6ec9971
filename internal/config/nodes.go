package config

import (
	"strconv"
	"strings"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// Where says which processes a CONFIG command concerns.
type Where uint8

const (
	Here      Where = iota // this process alone
	ShowNodes              // ask every node NodesQuestion, then AppendGetOfNodes
	SetNodes               // send the command to every node
	Mixed                  // refuse it with ErrMixed: it names parameters of nodes and of this process
)

// ErrMixed answers a CONFIG SET that could not be applied as a whole or not at all.
var ErrMixed = "ERR CONFIG SET failed - " + strings.Join(nodeParameters(), ", ") +
	" are the nodes': set them apart from others"

// NodesQuestion is the request whose reply OfNodes.Add takes.
var NodesQuestion = func() [][]byte {
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

// Concerns returns what a proxy does with a CONFIG command. args is the whole request.
func Concerns(args [][]byte) Where {
	row, _ := command.Resolve(nil, args)
	switch {
	case row == nil:
	case row.ID == command.ConfigGet:
		patterns, _ := lowerPatterns(args[2:]) // too many: AppendGet refuses them
		for i := range parameters {
			if p := &parameters[i]; p.nodes && p.matches(patterns) {
				return ShowNodes
			}
		}
	case row.ID == command.ConfigSet:
		return setForNodes(args[2:])
	}
	return Here
}

func setForNodes(pairs [][]byte) Where {
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
		return Here
	case others > 0:
		return Mixed
	}
	return SetNodes
}

// OfNodes collects the nodes' values of the node parameters. The zero value is empty.
type OfNodes struct {
	values map[string]string // by name
}

// Add adds a node's reply to NodesQuestion, which it does not keep; it returns false if the reply
// is malformed. If numbers differ, the smallest is shown, because it limits first. If other values
// differ, the result says so.
func (n *OfNodes) Add(reply []byte) bool {
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

// AppendGetOfNodes answers CONFIG GET with the values of nodes in place of this process's. args is
// the whole request.
func (c *Config) AppendGetOfNodes(dst []byte, v resp.Version, args [][]byte, n *OfNodes) []byte {
	return appendValues(dst, v, args[2:], func(p *parameter) string {
		if value, known := n.values[p.name]; known && p.nodes {
			return value
		}
		return c.value(p)
	})
}
