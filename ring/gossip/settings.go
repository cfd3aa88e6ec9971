package gossip

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dunlin-cache/dunlin/internal/beat"
	"github.com/dunlin-cache/dunlin/ring"
	"github.com/dunlin-cache/dunlin/ring/office"
)

// The settings document (see ring.Settings) follows the table, which names the document by its
// hash:
//
//	coordinator  Configure ─▶ a document, kept here ─▶ table, epoch+1, that names it
//	everybody    adopts the table ─▶ fetches the document ─▶ OnSettings ─▶ announces that it has it
//	coordinator  every member that is alive has announced it ─▶ Configure returns
//
// A member adopts a table before it has the table's document, so no failover waits for settings. If
// the coordinator dies before any member has fetched its document, that document is lost. The next
// coordinator then issues a table that names the document which it has itself.

const (
	// settingsRetry is the time until a document that could not be fetched is looked for again.
	settingsRetry = 200 * time.Millisecond
	// settingsTimeout bounds one attempt to fetch a document from one node. A large document takes
	// seconds through a slow network.
	settingsTimeout = 5 * time.Second
	// settingsHedge is how long one node is waited for before another one is asked as well, up to
	// settingsAtOnce: a node that hangs must not keep this member from its settings.
	settingsHedge  = 200 * time.Millisecond
	settingsAtOnce = 3
	// settingsLost is how long the coordinator looks for a document before it gives the document
	// up.
	settingsLost = 3 * time.Second
)

var (
	errNotCoordinator = errors.New("another node is the coordinator")
	errNoSettings     = errors.New("the settings that hold have not been read yet")
)

// settingsState is what a member knows about settings.
type settingsState struct {
	applied  atomic.Pointer[ring.Settings] // by this member
	proposed atomic.Pointer[ring.Settings] // our next table will name it; no table does yet
	named    atomic.Pointer[ring.Settings] // the last proposal that a table of ours has named
	settled  atomic.Bool                   // this member has had the settings that hold
	changing chan struct{}                 // of capacity 1: full while a change is under way
	wake     chan struct{}                 // of capacity 1: a table was adopted

	// missing is the document that the loop has not found since missingSince.
	missing      ring.SettingsID
	missingSince time.Time
}

// settingsMark is how a member announces that it has a document: the version and a part of the
// hash.
type settingsMark struct{ version, hash uint64 }

func markOf(id ring.SettingsID) settingsMark {
	return settingsMark{id.Version, binary.LittleEndian.Uint64(id.Hash[:])}
}

func (m settingsMark) append(b []byte) []byte {
	return binary.LittleEndian.AppendUint64(binary.AppendUvarint(b, m.version), m.hash)
}

// parseMark reads what append wrote, if it is there. rest is what follows it.
func parseMark(b []byte) (m settingsMark, rest []byte) {
	version, n := binary.Uvarint(b)
	if n <= 0 || len(b) < n+8 {
		return settingsMark{}, nil
	}
	return settingsMark{version, binary.LittleEndian.Uint64(b[n:])}, b[n+8:]
}

// Settings returns the document with the given hash, or nil if this member does not have it.
func (a *Agent) Settings(hash []byte) *ring.Settings {
	for _, s := range []*ring.Settings{a.settings.applied.Load(), a.settings.named.Load()} {
		if id := s.ID(); s != nil && string(id.Hash[:]) == string(hash) {
			return s
		}
	}
	return nil
}

// Coordinator returns the member that this one considers the coordinator.
func (a *Agent) Coordinator() (m ring.Member, self, ok bool) {
	m, ok = ring.Coordinator(a.alive())
	return m, m.Name() == a.name, ok
}

// Configure changes settings of the cluster, as the coordinator, and returns when every alive
// member has applied them. The error says whether the settings have changed.
func (a *Agent) Configure(ctx context.Context, changes map[string]string) error {
	return a.configure(ctx, nil, changes)
}

// ConfigureFrom is Configure for changes that were made for one document: that with the given hash. If another one
// holds, the error is ring.ErrSettingsChanged.
func (a *Agent) ConfigureFrom(ctx context.Context, based [32]byte, changes map[string]string) error {
	return a.configure(ctx, &based, changes)
}

func (a *Agent) configure(ctx context.Context, based *[32]byte, changes map[string]string) error {
	select {
	case a.settings.changing <- struct{}{}:
		defer func() { <-a.settings.changing }()
	case <-ctx.Done():
		return errors.New("cannot change settings: another change is under way")
	}
	want, err := a.propose(based, changes)
	if err != nil {
		return fmt.Errorf("cannot change settings: %w", err)
	}
	poke(a.wake)
	without := a.awaitSettings(ctx, want)
	switch {
	case len(without) == 0:
		return nil
	case a.withdraw(want):
		return errors.New("cannot change settings: this node could not issue a table; nothing has changed")
	}
	return fmt.Errorf("the cluster's settings have changed, but are not applied yet by %s", strings.Join(without, ", "))
}

// SettingsSoon reports whether the cluster does not take settings yet, but is about to: it was just
// founded, and has not reached the level that settings need and that all of its members speak.
func (a *Agent) SettingsSoon() bool {
	return a.Table() != nil && a.level() < ring.SettingsLevel && ring.CommonLevel(a.alive()) >= ring.SettingsLevel
}

// awaitSettings waits until every alive member has applied the document, and returns nil then. It
// gives up when ctx ends, or when the document was dropped, and returns the ids of those members
// that have not applied it.
func (a *Agent) awaitSettings(ctx context.Context, want *ring.Settings) (without []string) {
	for {
		if without = a.without(want.ID()); len(without) == 0 {
			return nil
		}
		s := &a.settings
		dropped := s.applied.Load() != want && s.proposed.Load() != want && s.named.Load() != want
		if dropped || !a.tick(ctx) {
			return a.without(want.ID()) // some may have applied it meanwhile
		}
	}
}

// tick waits a little. It returns false if ctx or the agent has ended.
func (a *Agent) tick(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-a.ctx.Done():
		return false
	case <-time.After(10 * time.Millisecond):
		return true
	}
}

// propose makes the next table name a document with the changes, and returns that document. If the
// present document already has the changes, it returns that one. With based, the present document must have that hash.
func (a *Agent) propose(based *[32]byte, changes map[string]string) (*ring.Settings, error) {
	_, self, _ := a.Coordinator()
	current, applied := a.Table(), a.settings.applied.Load()
	switch {
	case !self:
		return nil, errNotCoordinator
	case a.SettingsSoon():
		return nil, errors.New("the cluster was just founded and does not take settings yet: try again")
	case a.level() < ring.SettingsLevel:
		return nil, fmt.Errorf(
			"every member must be upgraded first: the cluster speaks protocol level %d, and this needs %d",
			a.level(), ring.SettingsLevel)
	case applied.ID() != current.Settings:
		return nil, errNoSettings
	case based != nil && applied.ID().Hash != *based:
		return nil, ring.ErrSettingsChanged
	case applied.Has(changes):
		return applied, nil
	}
	next, err := applied.With(current.Settings.Version+1, changes)
	if err != nil {
		return nil, err
	}
	a.settings.proposed.Store(next)
	return next, nil
}

// withdraw makes sure that no table will name the document. It returns false if one may have named
// it already.
func (a *Agent) withdraw(p *ring.Settings) bool {
	s := &a.settings
	return s.proposed.CompareAndSwap(p, nil) || s.named.Load() != p && s.applied.Load() != p
}

// without returns the ids of the alive members that have not applied the document.
func (a *Agent) without(id ring.SettingsID) (ids []string) {
	if a.settings.applied.Load().ID() != id {
		return []string{a.cfg.Self.ID}
	}
	want := markOf(id)
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range a.peers {
		if p.has != want && !a.isBelow(p) {
			ids = append(ids, p.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// dropProposal is called while this member is not the coordinator, so that no later table names the
// document unexpectedly.
func (a *Agent) dropProposal() { a.settings.proposed.Store(nil) }

// settingsLoop keeps this member's settings up to date. It has its own goroutine, so that fetching
// and applying a document delays neither gossip nor tables.
func (a *Agent) settingsLoop() {
	for {
		wait := a.updateSettings()
		select {
		case <-a.ctx.Done():
			return
		case <-a.settings.wake:
		case <-time.After(wait):
		}
	}
}

// updateSettings applies the document that the table names, and returns when to look again.
func (a *Agent) updateSettings() time.Duration {
	s := &a.settings
	t := a.Table()
	if t == nil {
		return beat.Until(office.Idle)
	}
	if s.applied.Load().ID() == t.Settings {
		s.settled.Store(true)
		return beat.Until(office.Idle)
	}
	next := a.findSettings(t)
	if next == nil && t.Settings.Version > 0 {
		if s.missing != t.Settings {
			s.missing, s.missingSince = t.Settings, time.Now()
		}
		if time.Since(s.missingSince) >= settingsLost {
			a.replaceSettings(t.Settings)
		}
		return settingsRetry
	}
	if a.cfg.OnSettings != nil {
		a.cfg.OnSettings(next)
	}
	s.applied.Store(next)
	s.settled.Store(true)
	a.mu.Lock()
	a.self.has = markOf(next.ID())
	a.self.seq++
	a.mu.Unlock()
	poke(a.metaSoon)
	poke(a.wake) // the coordinator is told at once
	a.cfg.Log.Info("settings applied", "version", next.ID().Version)
	return 0
}

// findSettings returns the document that the table names, nil if no node that answers has it. It
// asks the issuer of the table first.
func (a *Agent) findSettings(t *ring.Table) *ring.Settings {
	id := t.Settings
	if own := a.Settings(id.Hash[:]); own != nil || id.Version == 0 || a.cfg.FetchSettings == nil {
		return own
	}
	nodes := a.shuffledNodes(a.alive())
	slices.SortStableFunc(nodes, func(x, y ring.Member) int {
		switch {
		case x.Name() == t.Issuer:
			return -1
		case y.Name() == t.Issuer:
			return 1
		}
		return 0
	})
	return a.fetchSettings(nodes, id)
}

// fetchSettings asks the nodes for the document, in their order: the next one when the one before
// has failed or has not answered for settingsHedge, and settingsAtOnce of them at most at a time.
// It returns the first document that comes, or nil when all have failed.
func (a *Agent) fetchSettings(nodes []ring.Member, id ring.SettingsID) *ring.Settings {
	ctx, cancel := context.WithCancel(a.ctx)
	defer cancel()
	answers := make(chan *ring.Settings, len(nodes)) // so that nobody waits for this function
	asking := 0
	for len(nodes) > 0 || asking > 0 {
		var hedge <-chan time.Time // never, if nobody is left to ask
		if len(nodes) > 0 && asking < settingsAtOnce {
			m := nodes[0]
			nodes = nodes[1:]
			asking++
			a.loops.Go(func() { answers <- a.fetchSettingsOf(ctx, m, id) })
			hedge = time.After(settingsHedge)
		}
		select {
		case s := <-answers:
			if asking--; s != nil {
				return s
			}
		case <-hedge:
		}
	}
	return nil
}

// fetchSettingsOf returns the document of one node, or nil.
func (a *Agent) fetchSettingsOf(ctx context.Context, m ring.Member, id ring.SettingsID) *ring.Settings {
	ctx, cancel := context.WithTimeout(ctx, settingsTimeout)
	defer cancel()
	s, err := a.cfg.FetchSettings(ctx, m.Addr, id)
	if err != nil {
		a.cfg.Log.Debug("cannot fetch settings", "addr", m.Addr, "error", err)
	}
	s.ShareWith(a.settings.applied.Load())
	return s
}

// replaceSettings gives up a document that no member has, if this member is the coordinator.
func (a *Agent) replaceSettings(lost ring.SettingsID) {
	if _, self, _ := a.Coordinator(); !self {
		return
	}
	next, err := a.settings.applied.Load().With(lost.Version+1, nil)
	if err != nil {
		return // it was no larger before
	}
	if a.settings.proposed.CompareAndSwap(nil, next) {
		a.cfg.Log.Warn("no member has the settings that the table names: the previous settings apply again",
			"lost", lost.Version)
	}
	poke(a.wake)
}
