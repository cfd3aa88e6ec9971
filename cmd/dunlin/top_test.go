package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/metrics"
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
	admin := fakeAdmin(t, &metrics.Status{
		Cluster: metrics.Cluster{Name: "herd", Epoch: 4},
		Members: []metrics.Member{{ID: "n1", Role: "node", Epoch: 4, CommandsPerSecond: 1234}},
	})
	if err := top(ctx, out, admin, time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if len(out.all) != 3 {
		t.Fatalf("%d pages, want 3", len(out.all))
	}
	for _, page := range out.all {
		if !strings.HasPrefix(page, toTop) || !strings.HasSuffix(page, belowGone) || !strings.Contains(page, "cluster herd") || !strings.Contains(page, "1234") {
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
