package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/config"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/internal/session"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/ring"
)

// policies are the engine's policies by name.
var policies = map[string]engine.Policy{
	"allkeys":      engine.AllKeys,
	"volatile-ttl": engine.VolatileTTL,
	"noeviction":   engine.NoEviction,
}

// ParseEviction returns the eviction policy of that name; "" is allkeys.
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

// shrinkPatience is how long CONFIG SET maxmemory waits until what is used fits a lower limit.
const shrinkPatience = time.Second

// setMemory is CONFIG SET maxmemory. A lower limit holds at once for what is new. What is too much
// is evicted in slices, beside commands, for as long as that takes; setMemory returns after
// shrinkPatience at the latest. As in Redis, a limit below what is used is accepted even if nothing
// more may be evicted: the node then refuses writes until less is used.
func (n *Node) setMemory(bytes int64) error {
	set := make(chan error, 1)
	n.goJob(func() { set <- n.resize(bytes) })
	patience := time.NewTimer(shrinkPatience)
	defer patience.Stop()
	select {
	case err := <-set:
		return err
	case <-patience.C:
		return nil
	}
}

func (n *Node) resize(bytes int64) error {
	err := n.engine.SetMaxBytesWhile(bytes, func() bool { return n.ctx.Err() == nil })
	if errors.Is(err, engine.ErrMemory) {
		n.log.Warn("memory limit is below what is used, and nothing more may be evicted",
			"limit", bytes, "used", n.engine.Used())
		return nil
	}
	return err
}

// checkMemory returns the error with which setMemory would refuse. It names the node: through a
// proxy all are asked.
func (n *Node) checkMemory(bytes int64) error {
	if err := n.engine.CheckMaxBytes(bytes); err != nil {
		return fmt.Errorf("node %s: %w", n.cfg.ID, err)
	}
	return nil
}

// isConfigSet reports whether the request is one that configureLater must answer.
func isConfigSet(c *command.Command, args [][]byte) bool {
	return c.ID == command.Config && len(args) > 1 && exec.Is(args[1], "SET")
}

// configureLater answers CONFIG SET from a goroutine: the node must serve other connections while it
// evicts, or while others learn of the setting.
func (r *request) configureLater() {
	args := exec.CloneArgs(r.Args)
	r.conn.State.LastCmd = command.ConfigSet
	r.worker.Count.Commands[command.ConfigSet]++
	n := r.node
	r.answerLater(func() []byte {
		until := time.Now().Add(settingsSoonPatience)
		for n.settingsSoon(args) && time.Now().Before(until) && n.ctx.Err() == nil {
			n.pause(20 * time.Millisecond)
		}
		return n.settings.Set(nil, args)
	})
}

// configurePart: EACH CONFIG GET | RESETSTAT. internal/session answers a client's.
func configurePart(r *request) {
	n, id, args := r.node, r.Cmd.ID, exec.CloneArgs(r.Args)
	r.coverLater(waits, func(context.Context, *ring.PartitionSet) []byte { return n.configure(id, args) })
}

// setPart: EACH CONFIG SET. A proxy may first ask whether each node would set the parameters.
// The owner of partition 0 sets the parameters of the cluster, the others
// only check them. Each sets once, although the change itself brings a new table: the answer covers
// what this node served before and still serves, so that the proxy asks the next owner of the rest.
func setPart(r *request) {
	n, wanted, args := r.node, r.wanted, exec.CloneArgs(r.Args)
	if set, ok := config.Checked(args); ok {
		r.worker.Count.Internal++ // the client's command comes next
		r.coverLater(waits, func(context.Context, *ring.PartitionSet) []byte {
			if refusal := n.settings.Check(set); refusal != "" {
				return resp.AppendError(nil, refusal)
			}
			return resp.AppendOK(nil)
		})
		return
	}
	r.haveAnswered(settles, unkeyed, func(context.Context) []byte {
		_, before := n.coverage(&wanted)
		if before.Has(0) && n.settingsSoon(args) {
			return resp.AppendOK(member.AppendCovered(nil, &ring.PartitionSet{})) // the proxy asks again soon
		}
		set := n.settings.SetHere
		if before.Has(0) {
			set = n.settings.Set
		}
		reply := set(nil, args)
		if resp.IsError(reply) {
			return reply
		}
		_, after := n.coverage(&wanted)
		covered := before.Intersect(&after)
		if before.Has(0) {
			covered.Add(0) // the cluster has the parameters, whoever owns partition 0 by now
		}
		return append(member.AppendCovered(nil, &covered), reply...)
	}, nil)
}

// configure executes CONFIG GET or RESETSTAT, and answers in RESP2. Any goroutine may call it,
// because it does not use the connection's state, which belongs to a loop.
func (n *Node) configure(id command.ID, args [][]byte) []byte {
	reply, _, _ := n.session.Do(&session.State{}, command.ByID(id), args, nil)
	return reply
}

// What holds for the whole cluster is in the settings document (ring.Settings). The node passes a
// client's CONFIG SET of such a parameter to the coordinator, which answers when every member has
// applied it:
//
//	client ── CONFIG SET ─▶ node ── DUNLIN CONFIGURE ─▶ coordinator ─▶ table ─▶ all members
//	other node ── DUNLIN SETTINGS ─▶ node: the document that the table names

// SettingsSource is the member's gossip agent, which has the cluster's settings.
type SettingsSource interface {
	// Coordinator returns the member that changes settings. self reports whether that is this
	// member.
	Coordinator() (m ring.Member, self, ok bool)
	// Configure changes settings, at the coordinator, and returns when all members have applied
	// them.
	Configure(ctx context.Context, changes map[string]string) error
	// ConfigureFrom is Configure for changes of the document with that hash. If another one holds, the error is
	// ring.ErrSettingsChanged.
	ConfigureFrom(ctx context.Context, based [32]byte, changes map[string]string) error
	// SettingsSoon reports whether the cluster does not take settings yet, but is about to.
	SettingsSoon() bool
	// Settings returns the document with that hash, or nil if this member does not have it.
	Settings(hash []byte) *ring.Settings
}

// SetSettings gives the node its source of settings. Without one, the node sets parameters of the
// cluster for itself alone.
func (n *Node) SetSettings(s SettingsSource) {
	n.settingsSource.Store(&s)
	if n.cfg.Pinned != "" {
		n.goJob(func() { n.pinFirst(s) })
	}
}

// ApplySettings applies the cluster's settings. nil is the empty document.
func (n *Node) ApplySettings(s *ring.Settings) {
	if err := n.settings.ApplyCluster(s.Get); err != nil {
		n.log.Warn("some settings cannot be applied", "error", err)
	}
	n.place(s)
	n.applyFunctions(s)
}

// encodingsOf reads the limits of Redis's encodings.
func encodingsOf(c *config.Config) exec.Encodings {
	return exec.Encodings{
		HashEntries: c.EncodingLimit("hash-max-listpack-entries"),
		HashValue:   c.EncodingLimit("hash-max-listpack-value"),
		SetInts:     c.EncodingLimit("set-max-intset-entries"),
		SetEntries:  c.EncodingLimit("set-max-listpack-entries"),
		SetValue:    c.EncodingLimit("set-max-listpack-value"),
		ZSetEntries: c.EncodingLimit("zset-max-listpack-entries"),
		ZSetValue:   c.EncodingLimit("zset-max-listpack-value"),
		ListSize:    c.EncodingLimit("list-max-listpack-size"),
	}
}

const (
	// settingsPatience is how long a change of settings may take. It must end before an older proxy
	// that has asked for the change gives up on this node: see order.LargePatience.
	settingsPatience = 3 * time.Second
	// coordinatorPatience is how long the coordinator waits for all members. It is shorter, so that
	// the coordinator's answer, which names the members that are late, arrives in time.
	coordinatorPatience = settingsPatience - 500*time.Millisecond
	// settingsSoonPatience is how long CONFIG SET in a client's connection waits until a cluster that
	// was just founded takes settings.
	settingsSoonPatience = 8 * time.Second
)

// settingsSoon reports whether a CONFIG SET has to wait, because it needs settings of the cluster and
// the cluster is about to take them.
func (n *Node) settingsSoon(args [][]byte) bool {
	at := n.settingsSource.Load()
	return at != nil && config.SetsOfCluster(args) && (*at).SettingsSoon()
}

// setCluster has the coordinator change parameters of the cluster.
func (n *Node) setCluster(changes map[string]string) error {
	at := n.settingsSource.Load()
	if at == nil { // there is no cluster
		return n.settings.ApplyCluster(func(name string) (value string, set bool) {
			if value, set = changes[name]; !set {
				value, set = n.settings.ClusterValue(name)
			}
			return value, set
		})
	}
	if _, pins := changes[ring.PinnedSetting]; pins {
		return n.pin(*at, changes)
	}
	return n.setSettings(*at, nil, changes)
}

// setSettings has the coordinator change settings: any, or with based those of the document with that hash.
func (n *Node) setSettings(at SettingsSource, based *[32]byte, changes map[string]string) error {
	ctx, cancel := context.WithTimeout(n.ctx, settingsPatience)
	defer cancel()
	c, self, ok := at.Coordinator()
	switch {
	case !ok:
		return errors.New("cannot change settings: no node serves")
	case self:
		return configureHere(ctx, at, based, changes)
	}
	return member.Configure(ctx, n.cfg.Dialer, c.Addr, n.cfg.Secret.First(), based, changes)
}

// configureHere changes settings, at the coordinator.
func configureHere(ctx context.Context, at SettingsSource, based *[32]byte, changes map[string]string) error {
	if based == nil {
		return at.Configure(ctx, changes)
	}
	return at.ConfigureFrom(ctx, *based, changes)
}

// configureCluster: DUNLIN CONFIGURE [hash] {name value}..., at the coordinator
func configureCluster(r *request) {
	based, changes, ok := member.ParseConfigure(r.Args[2:])
	at := r.node.settingsSource.Load()
	if !ok || at == nil {
		r.Fail(errBadSettings)
		return
	}
	n := r.node
	r.answerLater(func() []byte {
		ctx, cancel := context.WithTimeout(n.ctx, coordinatorPatience)
		defer cancel()
		if err := configureHere(ctx, *at, based, changes); err != nil {
			return resp.AppendError(nil, "ERR "+err.Error())
		}
		return resp.AppendOK(nil)
	})
}

// replySettings answers a document. Its long parts are sent from where they lie, and the others are charged.
func (r *request) replySettings(s *ring.Settings) {
	if !r.Room(exec.LineRoom) {
		return
	}
	r.Out = resp.AppendBulkHeader(r.Out, s.Size())
	for part := range s.Parts() {
		if len(part) >= ring.SharedPart {
			r.Insert(part, engine.Pin{})
			continue
		}
		if !r.Room(len(part) + exec.LineRoom) {
			return
		}
		r.Out = append(r.Out, part...)
	}
	r.Out = append(r.Out, "\r\n"...)
}

// sendSettings: DUNLIN SETTINGS hash
func sendSettings(r *request) {
	if at := r.node.settingsSource.Load(); at != nil {
		if s := (*at).Settings(r.Args[2]); s != nil {
			r.replySettings(s)
			return
		}
	}
	r.ReplyNull()
}
