package node

import (
	"context"
	"errors"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// What holds for the whole cluster is in the settings document (ring.Settings). A client's CONFIG SET of
// such a parameter goes to the coordinator, which returns when every member has applied it:
//
//	client ── CONFIG SET ─▶ node ── DUNLIN CONFIGURE ─▶ coordinator ─▶ table ─▶ all members
//	other node ── DUNLIN SETTINGS ─▶ node: the document that the table names

// SettingsSource is what a node asks of the member's gossip agent about the cluster's settings.
type SettingsSource interface {
	// Coordinator returns the member that changes settings, and whether that is this one.
	Coordinator() (m ring.Member, self, ok bool)
	// Configure changes settings, at the coordinator, and returns when all members have them.
	Configure(ctx context.Context, changes map[string]string) error
	// Settings returns the document with that hash, nil if this member does not have it.
	Settings(hash []byte) *ring.Settings
}

// SetSettings gives the node its source of settings. Without one, parameters of the cluster are its own.
func (n *Node) SetSettings(s SettingsSource) { n.settingsSource.Store(&s) }

// ApplySettings obeys the cluster's settings from now on. nil is the empty document.
func (n *Node) ApplySettings(s *ring.Settings) {
	if err := n.settings.ApplyCluster(s.Get); err != nil {
		n.log.Warn("settings are not obeyed as a whole", "error", err)
	}
}

// settingsPatience is for how long a change of settings may take. It must be over before the proxies
// that have sent it give up.
const settingsPatience = 3 * time.Second

// setCluster has the coordinator change settings of the cluster.
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
	ctx, cancel := context.WithTimeout(n.ctx, settingsPatience)
	defer cancel()
	c, self, ok := (*at).Coordinator()
	switch {
	case !ok:
		return errors.New("no node serves")
	case self:
		return (*at).Configure(ctx, changes)
	}
	return member.Configure(ctx, n.cfg.Dialer, c.Addr, n.secret, changes)
}

// configureCluster: DUNLIN CONFIGURE {name value}..., at the coordinator
func configureCluster(r *request) {
	changes, ok := member.ParseConfigure(r.Args[2:])
	at := r.node.settingsSource.Load()
	if !ok || at == nil {
		r.Fail(errBadSettings)
		return
	}
	n := r.node
	r.answerLater(func() []byte {
		ctx, cancel := context.WithTimeout(n.ctx, settingsPatience)
		defer cancel()
		if err := (*at).Configure(ctx, changes); err != nil {
			return resp.AppendError(nil, "ERR "+err.Error())
		}
		return resp.AppendOK(nil)
	})
}

// sendSettings: DUNLIN SETTINGS hash
func sendSettings(r *request) {
	if at := r.node.settingsSource.Load(); at != nil {
		if s := (*at).Settings(r.Args[2]); s != nil {
			r.ReplyBulk(s.Encode())
			return
		}
	}
	r.ReplyNull()
}
