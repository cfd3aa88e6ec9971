package config

import (
	"strconv"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// Where says which processes a CONFIG command concerns.
type Where uint8

const (
	Here      Where = iota // this process alone
	ShowNodes              // ask every node NodesQuestion, then AppendGetOfNodes
	SetNodes               // send the nodes' parameters of Divide to every node, and then set the others
)

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
			if p := &parameters[i]; p.nodes && p.appendMatching(nil, patterns) != nil {
				return ShowNodes
			}
		}
	case row.ID == command.ConfigSet:
		if nodes, _ := Divide(args); len(nodes) > 2 {
			return SetNodes
		}
	}
	return Here
}

// Divide makes two requests of a CONFIG SET: one that sets the nodes' parameters, and one that sets
// the others. A request of two words sets nothing. An odd number of words, which is an error, is not
// divided: all are others.
func Divide(args [][]byte) (nodes, others [][]byte) {
	if len(args)%2 != 0 {
		return args[:2:2], args
	}
	nodes, others = args[:2:2], args[:2:2]
	for i := 2; i < len(args); i += 2 {
		if p := findParameter(args[i]); p != nil && p.nodes {
			nodes = append(nodes, args[i:i+2]...)
		} else {
			others = append(others, args[i:i+2]...)
		}
	}
	return nodes, others
}

// CheckQuestion returns the request by which a proxy asks whether a node would refuse a CONFIG SET: it
// names a parameter that there is not, before the others. Nodes understand it from ring.CheckLevel on.
func CheckQuestion(set [][]byte) [][]byte {
	question := append(set[:2:2], nil, nil)
	return append(question, set[2:]...)
}

// Checked returns the CONFIG SET that a CheckQuestion is about. ok is false for another request.
func Checked(question [][]byte) (set [][]byte, ok bool) {
	if len(question) < 4 || len(question[2]) > 0 || len(question[3]) > 0 {
		return nil, false
	}
	return append(question[:2:2], question[4:]...), true
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
