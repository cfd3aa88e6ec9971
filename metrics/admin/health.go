package admin

import (
	"fmt"
	"io"
	"net/http"

	"github.com/dunlin-cache/dunlin/internal/netloop"
)

// healthz says whether this process works at all: its loops answer. It never
// asks about other members, or a platform that restarts unhealthy processes
// would restart a whole cluster because one member is gone.
func (a *Admin) healthz(w http.ResponseWriter, _ *http.Request) {
	if err := a.pulse(); err != nil {
		http.Error(w, fmt.Sprintf("event loops do not answer: %v", err), http.StatusServiceUnavailable)
		return
	}
	plain(w, "ok\n")
}

// pulse fails when a loop does not run.
func (a *Admin) pulse() error {
	a.mu.Lock()
	loops := a.loops
	a.mu.Unlock()
	if loops == nil {
		return nil
	}
	return loops.Each(func(*netloop.Loop) {})
}

// readyz says whether clients should come here.
func (a *Admin) readyz(w http.ResponseWriter, _ *http.Request) {
	if missing := a.notReady(); missing != "" {
		http.Error(w, missing, http.StatusServiceUnavailable)
		return
	}
	plain(w, "ready\n")
}

// notReady names what is missing, or returns "".
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
	_, _ = io.WriteString(w, text) // the client is gone: nothing to do about it
}
