package wide

import "github.com/dunlin-cache/dunlin/internal/figures"

// SLOWLOG GET, LEN and RESET.

// slowLog takes the latest of the nodes' entries.
type slowLog struct {
	call *Call
	logs figures.SlowLogs
}

func askSlowLogGet(c *Call, q *Question) error {
	q.AboutNodes, q.merge = true, &slowLog{call: c}
	return nil
}

func askSlowLogLen(_ *Call, q *Question) error {
	q.AboutNodes, q.merge = true, &sum{anew: true}
	return nil
}

func askSlowLogReset(_ *Call, q *Question) error { return askOK(q) }

// Begin forgets the entries: they are not about partitions.
func (m *slowLog) Begin() { m.logs = figures.SlowLogs{} }

// Add takes a node's entries.
func (m *slowLog) Add(a Answer) error { return malformedUnless(m.logs.Add(a.Reply, a.Node)) }

// Reply appends as many entries as the client has asked for.
func (m *slowLog) Reply(dst []byte) []byte {
	count, _ := figures.SlowLogCount(m.call.Args) // the nodes have checked it
	return m.logs.Append(dst, count)
}
