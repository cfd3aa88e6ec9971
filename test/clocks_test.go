package test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// wallClocks lists the files that may read a clock which steps, and what for. Durations and
// freshness go by monotonic clocks: Loop.Now, Group.Clock, time.Since, internal/boottime.
var wallClocks = map[string]string{
	"cmd/dunlin/member.go":              "a boot is named by its time",
	"internal/figures/info_sections.go": "INFO shows the time",
	"internal/figures/slowlog.go":       "SLOWLOG shows when a command was slow",
	"internal/member/peer.go":           "a deadline in the past ends a call",
	"internal/netloop/clock.go":         "the clock by which keys expire follows the system's",
	"internal/session/connection.go":    "TIME",
	"internal/session/settings.go":      "LASTSAVE",
	"metrics/exporter/tls.go":           "when a certificate expires",
	"metrics/fake/fake.go":              "figures that are made up",
	"metrics/page/live.go":              "the page shows the time",
	"metrics/status/history.go":         "the page shows the time",
	"node/blocked.go":                   "keys expire",
	"node/claim.go":                     "keys expire",
	"node/conn.go":                      "keys expire",
	"node/gather_here.go":               "keys expire",
	"node/gather_home.go":               "keys expire",
	"node/gather_reserve_here.go":       "keys expire",
	"node/gather_scratch.go":            "keys expire",
	"node/replication.go":               "keys expire",
	"node/server.go":                    "keys expire",
	"node/stream/sender_anew.go":        "keys expire",
	"node/stream/sender_round.go":       "keys expire: their times travel with the sender's time",
	"node/stream/sender_talk.go":        "keys expire: their times travel with the sender's time",
	"node/stream/sender_value.go":       "keys expire",
	"node/timing.go":                    "MONITOR shows the time",
	"proxy/clients.go":                  "MONITOR shows the time",
	"proxy/moving.go":                   "a push to clients is named by its time",
}

// TestWallClocks: a step of the system's clock changes no duration.
func TestWallClocks(t *testing.T) {
	steps := []string{"Unix", "UnixMilli", "UnixMicro", "UnixNano"}
	readers := make(map[string]bool)
	for _, dir := range []string{"cmd", "internal", "metrics", "node", "proxy", "ring"} {
		err := filepath.WalkDir(filepath.Join("..", dir), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok && slices.Contains(steps, s.Sel.Name) {
					readers[filepath.ToSlash(strings.TrimPrefix(path, ".."+string(filepath.Separator)))] = true
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatalf("cannot read the sources: %v", err)
		}
	}
	for path := range readers {
		if wallClocks[path] == "" {
			t.Errorf("%s reads a clock that steps: use a monotonic one, or say here what for", path)
		}
	}
	for path := range wallClocks {
		if !readers[path] {
			t.Errorf("%s reads no clock that steps any more: remove it from the list", path)
		}
	}
}
