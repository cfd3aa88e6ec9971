package gossip

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
)

func TestLogWriter(t *testing.T) {
	var out bytes.Buffer
	drop := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	open, end := context.WithCancel(t.Context())
	logger := memberlistLogger(open,
		slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: drop})), &atomic.Uint64{})
	check := func(in, want string) {
		t.Helper()
		out.Reset()
		logger.Print(in)
		if got := strings.TrimSpace(out.String()); got != want {
			t.Errorf("%q was logged as %s, want %s", in, got, want)
		}
	}
	check("[DEBUG] memberlist: hello", `level=DEBUG msg="memberlist: hello"`)
	check("[INFO] memberlist: hello", `level=DEBUG msg="memberlist: hello"`)
	check("[WARN] memberlist: hello", `level=WARN msg="memberlist: hello"`)
	check("[ERR] memberlist: hello", `level=WARN msg="memberlist: hello"`)
	check("Err: odd", `level=DEBUG msg="memberlist: Err: odd"`)
	end()
	check("[WARN] memberlist: closed port", `level=DEBUG msg="memberlist: closed port"`)
}
