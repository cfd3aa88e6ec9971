package gossip

import (
	"errors"
	"time"

	"github.com/dunlin-cache/dunlin/ring"
)

// The cluster's level (see ring.Level) is in its table. What each member speaks comes with gossip,
// in a field of memberlist's own that builds without levels send as 0 and ignore: so nobody needs
// to be asked, and proxies say it as nodes do.

// levelSettle is how long every member must have spoken a higher level before the coordinator
// raises the cluster to it, because the level never falls again.
const levelSettle = 5 * time.Second

// level returns the cluster's level as far as this member knows.
func (a *Agent) level() uint8 {
	if t := a.Table(); t != nil {
		return t.Level
	}
	return 0
}

// warnLevel logs that this member needs an upgrade, if that is why it could not read a table.
func (a *Agent) warnLevel(addr string, err error) {
	var refusal *ring.LevelError
	if errors.As(err, &refusal) && a.mayWarn() {
		a.cfg.Log.Warn("cannot read the cluster's table", "from", addr, "error", err)
	}
}
