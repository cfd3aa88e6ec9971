package wide

import (
	"bytes"
	"slices"
	"strings"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// SCRIPT LOAD, EXISTS, FLUSH, SHOW and KILL, and FUNCTION KILL: of all nodes, and of the proxy, which keeps the
// bodies that its clients have sent.

// script merges what nodes answer about scripts.
type script struct {
	call   *Call
	reply  []byte // the first one; nil: none yet
	exists []bool // SCRIPT EXISTS: whether all nodes know it
	failed []scriptFailure
}

// scriptFailure is the error that a node has answered last.
type scriptFailure struct {
	node, text string
}

// rank returns how much an error says: UNKILLABLE says more than others, and NOTBUSY of another node says nothing.
func (f *scriptFailure) rank() int {
	switch {
	case strings.HasPrefix(f.text, "UNKILLABLE"):
		return 2
	case strings.HasPrefix(f.text, "NOTBUSY"):
		return 0
	}
	return 1
}

func askScript(c *Call, q *Question) error {
	q.merge = &script{call: c}
	return nil
}

func askScriptFlush(c *Call, q *Question) error {
	c.Host.FlushScripts()
	return askScript(c, q)
}

func askScriptKill(c *Call, q *Question) error {
	q.AboutNodes = true
	return askScript(c, q)
}

// Begin forgets nothing: a round asks about what no answer has covered. A node that is asked again replaces its error.
func (m *script) Begin() {}

// Add takes a node's answer.
func (m *script) Add(a Answer) error {
	m.failed = slices.DeleteFunc(m.failed, func(f scriptFailure) bool { return f.node == a.Node }) // of a round before
	switch {
	case resp.IsError(a.Reply):
		m.failed = append(m.failed, scriptFailure{a.Node, strings.TrimRight(string(a.Reply[1:]), "\r\n")})
		return nil
	case m.call.Command.Name == "script|exists":
		return m.addExists(a.Reply)
	case m.reply == nil:
		m.reply = bytes.Clone(a.Reply)
	}
	return nil
}

func (m *script) addExists(reply []byte) error {
	n, header, ok := resp.DecodeArray(reply)
	if names := len(m.call.Args) - 2; !ok || n != names {
		return errMerge
	}
	if m.exists == nil {
		m.exists = make([]bool, n)
		for i := range m.exists {
			m.exists[i] = true
		}
	}
	rest := reply[header:]
	var scan resp.Scanner
	for i := range n {
		if scan.Scan(rest) != resp.Done {
			return errMerge
		}
		m.exists[i] = m.exists[i] && string(rest[:scan.Len()]) == ":1\r\n"
		rest = rest[scan.Len():]
	}
	return nil
}

// worst returns the first of the errors that say most.
func (m *script) worst() string {
	f := &m.failed[0]
	for i := range m.failed {
		if m.failed[i].rank() > f.rank() {
			f = &m.failed[i]
		}
	}
	return f.text
}

// Reply appends the reply. A script that only this proxy keeps exists, and an error of one node says nothing about
// KILL and SHOW at the others.
func (m *script) Reply(dst []byte) []byte {
	c := m.call
	switch name := c.Command.Name; {
	case m.exists != nil:
		dst = resp.AppendArray(dst, len(m.exists))
		for i, exists := range m.exists {
			n := int64(0)
			if exists || c.Host.HasScript(c.Args[2+i]) {
				n = 1
			}
			dst = resp.AppendInt(dst, n)
		}
		return dst
	case len(m.failed) > 0 && (m.reply == nil || name == "script|load" || name == "script|flush"):
		return resp.AppendError(dst, m.worst())
	case m.reply == nil:
		return resp.AppendError(dst, errMerge.Error())
	case name == "script|load":
		c.Host.KeepScript(c.Args[2])
	}
	return append(dst, m.reply...)
}
