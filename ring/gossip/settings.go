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
// A member adopts a table before it has the table's document, so no failover waits for settings.
// If the coordinator dies before any member has fetched its document, that document is lost. The
// next coordinator then issues a table that names the document which it has itself.

const (
	// settingsRetry is the time until a document that could not be fetched is looked for again.
	settingsRetry = 200 * time.Millisecond
	// settingsTimeout bounds one attempt to fetch a document from one node.
	settingsTimeout = 5 * time.Second
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
	proposed atomic.Pointer[ring.Settings] // our next table will name it
	changing chan struct{}                 // of capacity 1: full while a change is under way
	wake     chan struct{}                 // of capacity 1: a table was adopted
	missing  time.Time                     // when the loop began to look for a document that it has not found yet
}

// settingsMark is how a member announces that it has a document: the version and a part of the
// hash.
type settingsMark struct{ version, hash uint64 }

func markOf(id ring.SettingsID) settingsMark {
	return settingsMark{id.Version, binary.LittleEndian.Uint64(id.Hash[:])}
}

// append appends the mark, and nothing without a document: builds without levels refuse
// announcements that are longer than theirs. Later levels append their own fields behind the mark.
func (m settingsMark) append(b []byte) []byte {
	if m.version == 0 {
		return b
	}
	return binary.LittleEndian.AppendUint64(binary.AppendUvarint(b, m.version), m.hash)
}

// parseMark reads what append wrote. It ignores the fields of later levels behind it.
func parseMark(b []byte) (m settingsMark) {
	version, n := binary.Uvarint(b)
	if n <= 0 || len(b) < n+8 {
		return settingsMark{}
	}
	return settingsMark{version, binary.LittleEndian.Uint64(b[n:])}
}

// Settings returns the document with the given hash, or nil if this member does not have it.
func (a *Agent) Settings(hash []byte) *ring.Settings {
	for _, s := range []*ring.Settings{a.settings.applied.Load(), a.settings.proposed.Load()} {
		if id := s.ID(); s != nil && string(id.Hash[:]) == string(hash) {
			return s
		}
	}
	return nil
}

// HasSettings reports whether this member has a table, and has applied the settings that it names.
func (a *Agent) HasSettings() bool {
	t := a.Table()
	return t != nil && a.settings.applied.Load().ID() == t.Settings
}

// Coordinator returns the member that this one considers the coordinator.
func (a *Agent) Coordinator() (m ring.Member, self, ok bool) {
	m, ok = ring.Coordinator(a.alive())
	return m, m.Name() == a.name, ok
}

// Configure changes settings of the cluster, as the coordinator, and returns when every alive
// member has applied them. If ctx ends first it returns an error, but the settings may have changed
// all the same.
func (a *Agent) Configure(ctx context.Context, changes map[string]string) error {
	select {
	case a.settings.changing <- struct{}{}:
		defer func() { <-a.settings.changing }()
	case <-ctx.Done():
		return fmt.Errorf("cannot change settings: another change is under way: %w", ctx.Err())
	}
	want, err := a.propose(changes)
	if err != nil {
		return fmt.Errorf("cannot change settings: %w", err)
	}
	poke(a.wake)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		without := a.without(want)
		if len(without) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("cannot change settings everywhere in time: without them are %s: %w", strings.Join(without, ", "), ctx.Err())
		case <-a.ctx.Done():
			return errors.New("cannot change settings: gossip is closed")
		case <-tick.C:
		}
	}
}

// propose makes the next table name a document with the changes, and returns the id of that
// document. If the present document already has the changes, it returns that one's id.
func (a *Agent) propose(changes map[string]string) (ring.SettingsID, error) {
	_, self, _ := a.Coordinator()
	current, applied := a.Table(), a.settings.applied.Load()
	switch {
	case !self:
		return ring.SettingsID{}, errNotCoordinator
	case a.level() < ring.SettingsLevel:
		return ring.SettingsID{}, fmt.Errorf("every member must be upgraded first: the cluster speaks protocol level %d, and this needs %d",
			a.level(), ring.SettingsLevel)
	case applied.ID() != current.Settings:
		return ring.SettingsID{}, errNoSettings
	case applied.Has(changes):
		return applied.ID(), nil
	}
	next, err := applied.With(current.Settings.Version+1, changes)
	if err != nil {
		return ring.SettingsID{}, err
	}
	a.settings.proposed.Store(next)
	return next.ID(), nil
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
		if p.has != want {
			ids = append(ids, p.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// dropProposal is called while this member is not the coordinator. It drops a document that none of
// this member's tables has named, so that no later table names it unexpectedly.
func (a *Agent) dropProposal() {
	if p, t := a.settings.proposed.Load(), a.Table(); p != nil && t != nil && p.ID() != t.Settings {
		a.settings.proposed.CompareAndSwap(p, nil)
	}
}

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
	if t == nil || s.applied.Load().ID() == t.Settings {
		s.missing = time.Time{}
		return office.Idle
	}
	next := a.findSettings(t.Settings)
	if next == nil && t.Settings.Version > 0 {
		if s.missing.IsZero() {
			s.missing = time.Now()
		}
		if time.Since(s.missing) >= settingsLost {
			a.replaceSettings(t.Settings)
		}
		return settingsRetry
	}
	s.missing = time.Time{}
	if a.cfg.OnSettings != nil {
		a.cfg.OnSettings(next)
	}
	s.applied.Store(next)
	a.mu.Lock()
	a.self.has = markOf(next.ID())
	a.self.seq++
	a.mu.Unlock()
	poke(a.metaSoon)
	poke(a.wake) // the coordinator is told at once
	a.cfg.Log.Info("settings applied", "version", next.ID().Version)
	return 0
}

// findSettings returns the document, nil if no node that answers has it. It asks the issuer of the
// table first.
func (a *Agent) findSettings(id ring.SettingsID) *ring.Settings {
	if own := a.Settings(id.Hash[:]); own != nil || id.Version == 0 || a.cfg.FetchSettings == nil {
		return own
	}
	nodes := a.shuffledNodes(a.alive())
	issuer := a.Table().Issuer
	slices.SortStableFunc(nodes, func(x, y ring.Member) int {
		switch {
		case x.Name() == issuer:
			return -1
		case y.Name() == issuer:
			return 1
		}
		return 0
	})
	for _, m := range nodes {
		ctx, cancel := context.WithTimeout(a.ctx, settingsTimeout)
		s, err := a.cfg.FetchSettings(ctx, m.Addr, id)
		cancel()
		if err != nil {
			a.cfg.Log.Debug("cannot fetch settings", "addr", m.Addr, "error", err)
		}
		if s != nil {
			return s
		}
	}
	return nil
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
	a.cfg.Log.Warn("no member has the settings that the table names: the previous settings apply again", "lost", lost.Version)
	a.settings.proposed.Store(next)
	poke(a.wake)
}
