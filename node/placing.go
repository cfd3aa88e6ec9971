package node

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/ring"
)

// Which databases are pinned is a setting of the cluster (ring.Placement). It changes only for databases without keys,
// in two documents, because members apply a document one after the other:
//
//	CONFIG SET ─▶ node: document that closes the databases ─▶ all members have applied it
//	              node: DUNLIN EMPTY ─▶ all nodes, of one table: none has a key there
//	              node: document that pins them, and opens them again
//
// A node executes no command on keys of a closed database, nor of any database but 0 while its table names a document
// that it has not applied yet. So no two nodes execute commands by different placements: a node that has not heard of
// the second document has the first one. Both documents are changes of the one that came before, so nothing comes
// between. Who closes databases and dies leaves them closed for closedLimit.

// placing is where keys lie by a settings document.
type placing struct {
	ring.Placement
	document *ring.Settings
	closing  ring.Closing
}

const (
	// pinPatience is how long a change of the pinned databases may take, apart from opening what it has closed.
	pinPatience = 5 * time.Second
	// holdsPatience is how long a node waits for what it has begun to execute on databases that are closed then.
	holdsPatience = 2 * time.Second
	// closedLimit is how long databases stay closed at most: much longer than pinPatience.
	closedLimit = 30 * time.Second
	// pinPause is the pause before a node is asked again, or looked for a document.
	pinPause = 20 * time.Millisecond
)

// place has keys lie where a document says. It returns when no loop executes commands by the document before.
func (n *Node) place(s *ring.Settings) {
	before := n.placing.Load()
	next := &placing{Placement: ring.PlacementOf(s), document: s, closing: ring.ClosingOf(s)}
	n.placing.Store(next)
	if next.Placement == before.Placement && next.closing == before.closing {
		return
	}
	n.log.Info("places keys", "pinned", next.Pinned().String(), "closed", next.closing.Databases.String())
	n.reviewBlocked()
	if n.barrier() && next.Placement != before.Placement {
		n.flushTracking(false) // nobody tells of keys that lie elsewhere from now on
	}
	if next.closing != before.closing {
		n.reopens() // nobody waits for the end of a closing that is over
		if next.closing != (ring.Closing{}) {
			ctx, cancel := context.WithCancel(n.ctx)
			n.reopens = cancel
			n.goJob(func() { n.openAfter(ctx, next.closing) })
		}
	}
}

// openAfter opens databases again that were closed for too long. It ends with ctx.
func (n *Node) openAfter(ctx context.Context, c ring.Closing) {
	for limit := n.closedLimit; pauseFor(ctx, limit); limit = time.Second {
		n.log.Warn("databases have been closed for too long, opens them", "databases", c.Databases.String())
		err := n.open(c)
		if err == nil {
			return
		}
		n.log.Warn("cannot open databases", "error", err)
	}
}

// open ends a closing, if it holds.
func (n *Node) open(c ring.Closing) error {
	at := n.settingsSource.Load()
	if at == nil {
		return nil // there is no cluster whose settings could change
	}
	for until := time.Now().Add(settingsPatience); ; n.pause(pinPause) {
		p := n.placing.Load()
		if p.closing != c {
			return nil
		}
		hash := p.document.ID().Hash
		err := n.setSettings(*at, &hash, ring.Closing{}.Changes())
		if !errors.Is(err, ring.ErrSettingsChanged) || time.Now().After(until) {
			return err
		}
	}
}

// closed returns the databases of which no key may be used, by a node that obeys a table: all but 0
// if the table names a document that is not applied yet.
func (p *placing) closed(t *ring.Table) ring.Databases {
	if applied := p.document.ID(); t == nil || t.Settings == applied || t.Settings.Version < applied.Version {
		return p.closing.Databases
	}
	return allButDefault
}

const allButDefault = 1<<ring.MaxDatabases - 2

// closed returns the databases of which no key may be used now.
func (n *Node) closed() ring.Databases { return n.placing.Load().closed(n.view.Load().Table) }

// isOpen reports whether commands on keys of a database may be executed now.
func (r *request) isOpen(database uint8) bool {
	return !r.Closed.Has(database) && !r.gate().RefusesDatabase(database)
}

// admitDatabase reports whether a command on keys of a database, but 0, may be executed now. If not, it answers it.
// What has its partition was admitted before.
func (r *request) admitDatabase(database uint8) bool {
	switch {
	case r.Hold != nil || r.transaction != nil:
	case !r.isOpen(database):
		if r.Rest != nil {
			r.Fail(errPartly)
			return false
		}
		r.refuseDatabase(database)
		return false
	case r.conn.pipe == nil && r.Placement.Pins(database) && !r.node.cfg.Whole:
		r.Fail(fmt.Sprintf(errPinned, database))
		return false
	}
	return true
}

// admitSpread reports whether the keys of a database lie each in its own slot, and can be used now. If not, it answers
// that.
func (r *request) admitSpread(database uint8) bool {
	if !r.isOpen(database) {
		r.refuseDatabase(database)
		return false
	}
	return r.admitUnpinned(database)
}

// admitUnpinned is admitSpread for a key that may be used while its database is closed.
func (r *request) admitUnpinned(database uint8) bool {
	if r.Placement.Pins(database) {
		r.Fail(exec.ErrClosed)
		return false
	}
	return true
}

// refuseDatabase answers a command on keys of a database that is closed.
func (r *request) refuseDatabase(database uint8) {
	r.gate().RefusedDatabase(database)
	if r.conn.pipe == nil {
		r.worker.Count.Waits++
		r.Fail(exec.ErrClosed)
		return
	}
	r.replyWait()
}

// pin changes which databases are pinned, and the other settings among the changes with that.
func (n *Node) pin(at SettingsSource, changes map[string]string) error {
	if level := clusterLevel(n.view.Load().Table); level < ring.PinnedLevel {
		return fmt.Errorf("pinned databases need protocol level %d, and this cluster speaks %d: upgrade all members",
			ring.PinnedLevel, level)
	}
	pinned, err := ring.ParsePinned(changes[ring.PinnedSetting])
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(n.ctx, pinPatience)
	defer cancel()
	closing := ring.Closing{Name: rand.Text()}
	err = n.changeSettings(ctx, at, func(p *placing) (map[string]string, error) {
		closing.Databases = p.Pinned() ^ pinned
		if p.closing != (ring.Closing{}) {
			return nil, errors.New("another change of the pinned databases is under way: try again")
		}
		if closing.Databases == 0 {
			return changes, nil
		}
		return closing.Changes(), nil
	})
	if closing.Databases == 0 {
		return err
	}
	if err == nil {
		err = n.pinEmpty(ctx, at, closing, changes)
	}
	if err != nil {
		if problem := n.open(closing); problem != nil {
			n.log.Warn("cannot open databases", "error", problem)
		}
	}
	return err
}

// pinEmpty makes the changes, which open the databases that are closed too, if these are empty.
func (n *Node) pinEmpty(ctx context.Context, at SettingsSource, c ring.Closing, changes map[string]string) error {
	p := n.placing.Load()
	if p.closing != c {
		return errClosingLost
	}
	filled, err := n.filled(ctx, p)
	if err != nil {
		return fmt.Errorf("cannot change pinned databases: %w", err)
	}
	for d := range uint8(ring.MaxDatabases) {
		if filled.Has(d) {
			return fmt.Errorf("database %d is not empty: FLUSHDB it, then set pinned-databases again", d)
		}
	}
	all := ring.Closing{}.Changes()
	for name, value := range changes {
		all[name] = value
	}
	return n.changeSettings(ctx, at, func(p *placing) (map[string]string, error) {
		if p.closing != c {
			return nil, errClosingLost
		}
		return all, nil
	})
}

var errClosingLost = errors.New("cannot change pinned databases: somebody else has changed them meanwhile, try again")

// changeSettings makes changes of the document that holds.
func (n *Node) changeSettings(
	ctx context.Context, at SettingsSource, changes func(p *placing) (map[string]string, error),
) error {
	for {
		p := n.placing.Load()
		next, err := changes(p)
		if err != nil {
			return err
		}
		hash := p.document.ID().Hash
		err = n.setSettings(at, &hash, next)
		if !errors.Is(err, ring.ErrSettingsChanged) || ctx.Err() != nil {
			return err
		}
		n.pause(pinPause)
	}
}

// filled returns which of the databases that are closed have keys. All nodes say so of what they own in one epoch, so
// no partition is missed that moves.
func (n *Node) filled(ctx context.Context, p *placing) (ring.Databases, error) {
	for {
		all, err := n.filledOnce(ctx, p)
		if err == nil || ctx.Err() != nil {
			return all, err
		}
		n.pause(pinPause)
	}
}

func (n *Node) filledOnce(ctx context.Context, p *placing) (all ring.Databases, err error) {
	table := n.view.Load().Table
	for _, m := range table.Nodes {
		f, err := n.filledAt(ctx, m, p)
		if err == nil && f.Epoch != table.Epoch {
			err = fmt.Errorf("node %s obeys table %d, want %d", m.Name(), f.Epoch, table.Epoch)
		}
		if err != nil {
			return 0, err
		}
		all |= f.Databases
	}
	return all, nil
}

// filledAt asks one node.
func (n *Node) filledAt(ctx context.Context, m ring.Member, p *placing) (member.Filled, error) {
	hash, databases := p.document.ID().Hash, p.closing.Databases
	if m.Name() == n.name() {
		return n.filledHere(ctx, hash, databases)
	}
	return member.AskFilled(ctx, n.cfg.Dialer, m.Addr, n.cfg.Secret.First(), hash, databases)
}

// filledHere returns which of the databases, which the document with that hash has closed, have keys in the partitions
// of this node. It waits for what this node has begun to execute there.
func (n *Node) filledHere(ctx context.Context, hash [32]byte, databases ring.Databases) (f member.Filled, err error) {
	ctx, cancel := context.WithTimeout(ctx, holdsPatience)
	defer cancel()
	p, view := n.placing.Load(), n.view.Load()
	if p.document.ID().Hash != hash || p.closing.Databases != databases {
		return f, errors.New("this node has other settings")
	}
	if !n.barrier() {
		return f, n.ctx.Err()
	}
	for _, h := range n.engine.Holds() {
		select {
		case <-h.Ended():
		case <-ctx.Done():
			return f, errors.New("a script or a transaction takes too long")
		}
	}
	f.Epoch = view.Epoch()
	for d := range uint8(ring.MaxDatabases) {
		if databases.Has(d) && n.hasKeys(view, d) {
			f.Databases = f.Databases.With(d)
		}
	}
	if view.Count(ownership.Gained) > 0 || n.view.Load().Epoch() != f.Epoch || n.isFenced(n.cfg.Group.Clock()) {
		return f, errors.New("this node is taking over partitions")
	}
	return f, nil
}

// hasKeys reports whether the view's partitions have keys in a database.
func (n *Node) hasKeys(v *ownership.View, database uint8) bool {
	counts := new([ring.Partitions]uint32)
	n.engine.CountsIn(database, counts)
	for p, keys := range counts {
		if keys > 0 && v.Owns(uint16(p)) {
			return true
		}
	}
	return false
}

// sendEmpty: DUNLIN EMPTY hash databases
func sendEmpty(r *request) {
	hash, databases, ok := member.ParseEmpty(r.Args[2:])
	if !ok {
		r.Fail(errBadSettings)
		return
	}
	n := r.node
	r.answerLater(func() []byte {
		f, err := n.filledHere(n.ctx, hash, databases)
		if err != nil {
			return resp.AppendError(nil, "ERR "+err.Error())
		}
		return member.AppendFilled(nil, f)
	})
}

// pinFirst pins databases when the cluster takes settings, if this node has founded it and nobody has set anything.
func (n *Node) pinFirst(at SettingsSource) {
	for ; n.ctx.Err() == nil; n.pause(pinPause) {
		v := n.view.Load()
		switch {
		case v.Table == nil || v.Self < 0:
			continue
		case v.Table.Joined[v.Self] > 1 || v.Table.Settings.Version > 0:
			return
		case clusterLevel(v.Table) < ring.PinnedLevel || at.SettingsSoon():
			continue
		}
		if err := n.pin(at, map[string]string{ring.PinnedSetting: n.cfg.Pinned}); err != nil {
			n.log.Warn("cannot pin databases", "databases", n.cfg.Pinned, "error", err)
		}
		return
	}
}
