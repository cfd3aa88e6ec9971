package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/config"
	"github.com/dunlin-cache/dunlin/internal/session"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/ring"
)

// policies are the engine's by their names.
var policies = map[string]engine.Policy{
	"allkeys":      engine.AllKeys,
	"volatile-ttl": engine.VolatileTTL,
	"noeviction":   engine.NoEviction,
}

// ParseEviction reads the name of an eviction policy; "" is allkeys.
func ParseEviction(name string) (engine.Policy, error) {
	if name == "" {
		return engine.AllKeys, nil
	}
	if own, known := config.PolicyName(name); known {
		return policies[own], nil
	}
	return 0, fmt.Errorf("unknown eviction policy %q: want allkeys, volatile-ttl or noeviction "+
		"(Redis's allkeys-lru, -lfu, -random mean the first, volatile-lru, -lfu, -random the second)", name)
}

// setEviction is CONFIG SET maxmemory-policy.
func (n *Node) setEviction(name string) error {
	p, err := ParseEviction(name)
	if err == nil {
		n.engine.SetPolicy(p)
	}
	return err
}

// setMemory is CONFIG SET maxmemory. As in Redis, a limit that nothing more may be
// evicted for is one: writes are refused until there is less.
func (n *Node) setMemory(bytes int64) error {
	err := n.engine.SetMaxBytes(bytes)
	if errors.Is(err, engine.ErrMemory) {
		n.log.Warn("memory limit is below what is used, and nothing more may be evicted", "limit", bytes, "used", n.engine.Used())
		return nil
	}
	return err
}

// isConfigSet reports whether the request is one that configureLater must answer.
func isConfigSet(c *command.Command, args [][]byte) bool {
	return c.ID == command.Config && len(args) > 1 && exec.Is(args[1], "SET")
}

// configureLater answers CONFIG SET from a goroutine: a lower limit holds at
// once, but until as much is evicted, other connections must be served.
func (r *request) configureLater() {
	args := exec.CloneArgs(r.Args)
	r.conn.State.LastCmd = command.ConfigSet
	r.worker.Count.Commands[command.ConfigSet]++
	n := r.node
	r.answerLater(func() []byte { return n.settings.Set(nil, args) })
}

// configurePart: EACH CONFIG GET | SET | RESETSTAT. A client's is answered as the session's.
// Parameters of the cluster are set by one node: the owner of partition 0.
func configurePart(r *request) {
	n, id, args := r.node, r.Cmd.ID, exec.CloneArgs(r.Args)
	r.conn.CoverLater(func(_ context.Context, covered *ring.PartitionSet) []byte {
		switch {
		case id != command.ConfigSet:
			return n.configure(id, args)
		case covered.Has(0):
			return n.settings.Set(nil, args)
		}
		return n.settings.SetHere(nil, args)
	})
}

// configure executes CONFIG GET or RESETSTAT, and answers in RESP2. It may be called
// from any goroutine, so without the connection's state, which is its loop's.
func (n *Node) configure(id command.ID, args [][]byte) []byte {
	reply, _, _ := n.session.Do(&session.State{}, command.ByID(id), args, nil)
	return reply
}
