package gossip

import "github.com/dunlin-cache/dunlin/ring"

// NotReady returns what this member still lacks before clients may be sent to it, as far as its
// agent knows, or "".
//
// Two things make a member ready: a table, and the settings that the table names. Readiness is
// about the first settings only. A member that has had the settings that held stays ready while a
// newer document is on its way: it goes on with the one before, as every member does for a moment
// when settings change. A member that has become too old for its cluster is not ready until it is
// upgraded.
func (a *Agent) NotReady() string {
	decide := a.officeConfig()
	if need := decide.Outdated(a.alive()); need > 0 {
		return "the cluster's table: " + (&ring.LevelError{Need: uint64(need)}).Error()
	}
	t := a.Table()
	switch {
	case t == nil:
		return "it has no table yet"
	case !a.settings.settled.Load() && a.settings.applied.Load().ID() != t.Settings:
		return "it has not applied the cluster's settings yet"
	}
	return ""
}
