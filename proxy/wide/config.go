package wide

import (
	"errors"
	"time"

	"github.com/dunlin-cache/dunlin/internal/config"
	"github.com/dunlin-cache/dunlin/ring"
)

// CONFIG GET and SET of parameters that nodes have, and CONFIG RESETSTAT.

type configGet struct {
	call     *Call
	settings config.OfNodes
}

func askConfigGet(c *Call, q *Question) error {
	q.AboutNodes, q.Words = true, config.NodesQuestion
	q.merge = &configGet{call: c}
	return nil
}

// foundingTime is how much longer CONFIG SET may wait than other commands, because a cluster that was
// just founded does not take settings of the cluster yet.
const foundingTime = 5 * time.Second

// configSet sets the nodes' parameters first, and then the others, which are the proxy's. Those
// were checked, and a proxy has no hook that could refuse them. The nodes are asked first whether
// they would refuse theirs. So either all are set or none, unless a node dies meanwhile. A refusal
// that is about one node, and not about the arguments, names it.
type configSet struct {
	done

	call   *Call
	q      *Question
	nodes  [][]byte // the request that sets the nodes' parameters
	others [][]byte // the request that sets the others
}

func askConfigSet(c *Call, q *Question) error {
	q.Rounds.Deadline += foundingTime
	m := &configSet{call: c, q: q}
	m.nodes, m.others = config.Divide(c.Args)
	if refusal := c.Host.Config().Check(m.others); refusal != "" {
		return errors.New(refusal)
	}
	q.merge, q.Words = m, m.nodes
	if q.Checks = c.Level >= ring.CheckLevel; q.Checks {
		q.Words = config.CheckQuestion(m.nodes)
	}
	return nil
}

// Finished has the nodes set the parameters when all have agreed to.
func (m *configSet) Finished(missing *ring.PartitionSet) bool {
	if !missing.Empty() {
		return false
	}
	checked := m.q.Checks
	if checked {
		m.q.Checks, m.q.Words = false, m.nodes
		m.q.Rounds.Restart()
	}
	return !checked
}

// Reply sets the others, and appends what comes of it.
func (m *configSet) Reply(dst []byte) []byte { return m.call.Host.Config().Set(dst, m.others) }

func askResetStat(_ *Call, q *Question) error { return askOK(q) }

// Begin forgets the settings: they are not about partitions.
func (m *configGet) Begin() { m.settings = config.OfNodes{} }

// Add takes a node's settings.
func (m *configGet) Add(a Answer) error { return malformedUnless(m.settings.Add(a.Reply)) }

// Reply appends the settings that the client has asked for.
func (m *configGet) Reply(dst []byte) []byte {
	return m.call.Host.Config().AppendGetOfNodes(dst, m.call.Version, m.call.Args, &m.settings)
}

// malformedUnless is the error of an answer that could not be read.
func malformedUnless(ok bool) error {
	if ok {
		return nil
	}
	return errMerge
}
