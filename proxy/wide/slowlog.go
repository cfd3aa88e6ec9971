package wide

import (
	"github.com/dunlin-cache/dunlin/internal/figures"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// SLOWLOG GET, LEN and RESET, of the nodes' logs and the proxy's own.

// slowLog takes the latest of the nodes' entries and the proxy's.
type slowLog struct {
	call *Call
	logs figures.SlowLogs
}

func askSlowLogGet(c *Call, q *Question) error {
	q.AboutNodes, q.merge = true, &slowLog{call: c}
	return nil
}

// slowLogLen adds up the nodes' numbers of entries and the proxy's.
type slowLogLen struct {
	sum
	call *Call
}

func askSlowLogLen(c *Call, q *Question) error {
	q.AboutNodes, q.merge = true, &slowLogLen{sum{anew: true}, c}
	return nil
}

// Reply appends the sum.
func (m *slowLogLen) Reply(dst []byte) []byte {
	own, _ := resp.DecodeInt(m.call.ownSlowLog())
	return resp.AppendInt(dst, m.total+own)
}

func askSlowLogReset(c *Call, q *Question) error {
	c.ownSlowLog()
	return askOK(q)
}

// ownSlowLog returns the reply of the proxy's own slow log to the call.
func (c *Call) ownSlowLog() []byte { return c.Host.SlowLog().AppendReply(nil, c.Args) }

// Begin forgets the entries: they are not about partitions.
func (m *slowLog) Begin() { m.logs = figures.SlowLogs{} }

// Add takes a node's entries.
func (m *slowLog) Add(a Answer) error { return malformedUnless(m.logs.Add(a.Reply, a.Node)) }

// Reply appends as many entries as the client has asked for.
func (m *slowLog) Reply(dst []byte) []byte {
	m.logs.Add(m.call.ownSlowLog(), "")
	count, _ := figures.SlowLogCount(m.call.Args) // the nodes have checked it
	return m.logs.Append(dst, count)
}
