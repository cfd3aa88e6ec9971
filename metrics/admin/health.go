package admin

import (
	"fmt"
	"io"
	"net/http"

	"github.com/dunlin-cache/dunlin/internal/netloop"
)

// healthz reports whether this process works: its loops answer. It never asks about other members,
// because a platform that restarts unhealthy processes would then restart a whole cluster when one
// member is gone.
func (a *Admin) healthz(w http.ResponseWriter, _ *http.Request) {
	if err := a.pulse(); err != nil {
		http.Error(w, fmt.Sprintf("event loops do not answer: %v", err), http.StatusServiceUnavailable)
		return
	}
	plain(w, "ok\n")
}

// pulse returns an error if a loop does not run.
func (a *Admin) pulse() error {
	a.mu.Lock()
	loops := a.loops
	a.mu.Unlock()
	if loops == nil {
		return nil
	}
	return loops.Each(func(*netloop.Loop) {})
}

// readyz reports whether clients should connect to this process.
func (a *Admin) readyz(w http.ResponseWriter, _ *http.Request) {
	if missing := a.notReady(); missing != "" {
		http.Error(w, missing, http.StatusServiceUnavailable)
		return
	}
	plain(w, "ready\n")
}

// notReady returns what is missing, or "".
func (a *Admin) notReady() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.draining {
		return "stopping"
	}
	return a.local.NotReady()
}

func plain(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, text) // an error means that the client is gone
}
