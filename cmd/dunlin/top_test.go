package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/metrics/status"
)

// pages ends what writes into it after so many.
type pages struct {
	all    []string
	most   int
	cancel context.CancelFunc
}

func (p *pages) Write(b []byte) (int, error) {
	p.all = append(p.all, string(b))
	if len(p.all) == p.most {
		p.cancel()
	}
	return len(b), nil
}

func TestTop(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	out := &pages{most: 3, cancel: cancel}
	admin := fakeAdmin(t, &status.Status{
		Cluster: status.Cluster{Name: "herd", Epoch: 4},
		Members: []status.Member{{ID: "n1", Role: "node", Epoch: 4, CommandsPerSecond: 1234,
			HotKeys: []status.HotKey{{Key: "config", UsesPerSecond: 42}}}},
	})
	if err := top(ctx, out, admin, time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if len(out.all) != 3 {
		t.Fatalf("%d pages, want 3", len(out.all))
	}
	for _, page := range out.all {
		if !strings.HasPrefix(page, toTop) || !strings.HasSuffix(page, belowGone) ||
			!strings.Contains(page, "cluster herd") || !strings.Contains(page, "1234") ||
			!strings.Contains(page, `42  n1  "config"`) {
			t.Errorf("a page is %q", page)
		}
	}
}

// TestTopGoesOn: a cluster that does not answer is no reason to end.
func TestTopGoesOn(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	out := &pages{most: 2, cancel: cancel}
	if err := top(ctx, out, "127.0.0.1:1", time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if len(out.all) != 2 || !strings.Contains(out.all[1], "cannot read status") {
		t.Errorf("pages %q", out.all)
	}
}

// TestPrintHotKeys: what a terminal would obey is escaped, and a long key is cut.
func TestPrintHotKeys(t *testing.T) {
	var got strings.Builder
	printHotKeys(&got, nil)
	if got.Len() > 0 {
		t.Errorf("without keys there is %q", got.String())
	}
	printHotKeys(&got, []status.NodeKey{
		{HotKey: status.HotKey{Key: "session:ä\x1b[2J\n", UsesPerSecond: 1200}, Node: "node-10"},
		{HotKey: status.HotKey{Key: strings.Repeat("x", 100), Database: 8, UsesPerSecond: 7}, Node: "n1"},
	})
	want := "\nhot keys, uses/s\n" +
		`        1200  node-10  "session:ä\x1b[2J\n"` + "\n" +
		`           7  n1       "` + strings.Repeat("x", 59) + "…  database 8\n"
	if got.String() != want {
		t.Errorf("got\n%swant\n%s", got.String(), want)
	}
}
