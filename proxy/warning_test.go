package proxy

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
)

// Of many similar warnings in a second the log gets one; the next one says how many were left out.
func TestWarningsAreBounded(t *testing.T) {
	var mu sync.Mutex
	var log bytes.Buffer
	c := newCluster(t, 0, oneLoop(t), func(cfg *Config) {
		cfg.Log = slog.New(slog.NewTextHandler(lockedWriter{&mu, &log}, nil))
	})
	w := c.proxy.workers[0]
	done := make(chan struct{})
	w.loop.Post(func() {
		for range 100 {
			w.warn(&w.warnings.slow, "client", "a")
			w.warn(&w.warnings.broken, "node", "n1")
		}
		w.warnings.slow.last -= warningPause
		w.warn(&w.warnings.slow, "client", "b")
		w.warnings.slow.last -= warningPause
		w.warn(&w.warnings.slow, "client", "c")
		close(done)
	})
	<-done
	mu.Lock()
	defer mu.Unlock()
	var got []string
	for line := range strings.Lines(log.String()) {
		_, message, _ := strings.Cut(strings.TrimSpace(line), "msg=")
		got = append(got, message)
	}
	const slow = `"client closed: it does not read its replies" client=`
	want := []string{slow + "a", `"pipe to node broke" node=n1`, slow + "b more_like_this=99", slow + "c"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the log has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

type lockedWriter struct {
	mu *sync.Mutex
	to *bytes.Buffer
}

func (w lockedWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(b)
}
