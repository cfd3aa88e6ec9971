package gossip

import (
	"errors"

	"github.com/dunlin-cache/dunlin/ring"
)

// The cluster's level (see ring.Level) is in its table. What each member speaks comes with gossip,
// in a field of memberlist's own that builds without levels send as 0 and ignore: so nobody needs
// to be asked, and proxies say it as nodes do. Members also announce the level of the table that
// they hold, so that one who cannot read that table knows why.

// level returns the cluster's level as far as this member knows.
func (a *Agent) level() uint8 {
	if t := a.Table(); t != nil {
		return t.Level
	}
	return 0
}

// isBelow reports whether a peer does not speak the cluster's level. Such a peer is no member: it
// may have been one before a split was healed, while this side of the split had a lower level.
func (a *Agent) isBelow(p peer) bool { return p.Level < a.level() }

// warnLevel logs that this member needs an upgrade, if that is why it could not read a table.
func (a *Agent) warnLevel(addr string, err error) {
	var refusal *ring.LevelError
	if errors.As(err, &refusal) && a.mayWarn() {
		a.cfg.Log.Warn("cannot read the cluster's table", "from", addr, "error", err)
	}
}
