package chaos

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/test/harness"
)

// TestChaosVisitorNotices: what a listener at a node has not heard is believed if the connection's end explains it, or
// its node has counted a gap, and nothing that was said while it was away counts.
func TestChaosVisitorNotices(t *testing.T) {
	start := time.Now().Add(-time.Hour)
	at := func(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }
	gap := &counts{}
	gap.note(at(0), at(1), 0, 0)
	gap.note(at(99), at(100), 1, 0)
	metrics := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, `dunlin_proxy_broken_pipes_total{kind="a"} 1`)
	}))
	t.Cleanup(metrics.Close)
	proxy := &harness.Member{ID: "p1", Role: "proxy", Admin: strings.TrimPrefix(metrics.URL, "http://"), Logged: os.DevNull}
	for _, o := range []struct {
		name         string
		acked, ended float64
		death        float64 // 0: the node leaves in order
		counts       *counts
		stroke       float64
		want         string // "": all is well
	}{
		{name: "behind the end", acked: 100.1, ended: 100, stroke: 95},
		{name: "shortly before the end", acked: 99.95, ended: 100, stroke: 95},
		{name: "long before the end", acked: 99, ended: 100, stroke: 95, want: "counts nothing"},
		{name: "long before the end, a gap", acked: 99, ended: 100, stroke: 95, counts: gap},
		{name: "behind the death", acked: 97, ended: 100, death: 96, stroke: 95},
		{name: "shortly before the death", acked: 95.95, ended: 100, death: 96, stroke: 95},
		{name: "long before the death", acked: 95.5, ended: 100, death: 96, stroke: 95, want: "counts nothing"},
		{name: "the death of another time", acked: 97, ended: 100, death: 90, stroke: 95, want: "counts nothing"},
		{name: "no fault", acked: 100.1, ended: 100, want: "though nothing has happened to its node"},
		{name: "a fault long ago", acked: 100.1, ended: 100, stroke: 20, want: "though nothing has happened to its node"},
	} {
		x := &Rig{T: t, C: &harness.Cluster{Members: []*harness.Member{proxy}}, Options: Options{relayed: true}}
		x.Pulse = &pulse{began: time.Now().Add(time.Hour)}
		node := &harness.Member{ID: "n1", Role: "node", Admin: "127.0.0.1:1"} // where nobody answers
		g := &hearing{x: x, counts: map[string]*counts{listenerAt(proxy): {}}, said: map[message]*saying{}, ended: at(200)}
		x.hearing = g
		v := &visitor{listener: &listener{Session: &Session{X: x, name: listenerAt(node), at: node}, g: g}}
		g.visitors = append(g.visitors, v)
		if g.counts[v.name] = o.counts; o.counts == nil {
			g.counts[v.name] = &counts{}
		}
		away := g.says(message{1, "channel:0", 1})
		away.acked = at(1)
		g.comes(v)
		heard := g.says(message{1, "channel:0", 2})
		v.last = map[message]int64{}
		if err := g.hears(v.listener, message{1, "channel:0", 2}); err != nil {
			t.Error(err)
		}
		heard.acked = at(2)
		missed := g.says(message{1, "channel:0", 3})
		missed.sent, missed.acked = at(o.acked-0.01), at(o.acked)
		if n := g.listenersSince(time.Now()); n != 1 {
			t.Errorf("%s: %d listeners are there", o.name, n)
		}
		ended := g.goes(v)
		ended.end = at(o.ended)
		g.says(message{1, "channel:0", 4}).acked = at(o.ended + 1)
		if n := g.listenersSince(time.Now()); n != 0 {
			t.Errorf("%s: %d listeners are there behind the end", o.name, n)
		}
		if o.stroke > 0 {
			x.strokes = []*stroke{{node: "n2", at: at(o.ended - 0.5)}, {node: "n1", at: at(o.stroke), until: at(o.stroke + 1)}}
		}
		if o.death > 0 {
			x.deaths = []death{{"n1", at(o.death), at(o.death)}}
		}
		ended.judgeEnd(x)
		x.judgeChannels()
		got := strings.Join(x.violations, "; ")
		if (o.want == "") != (got == "") || !strings.Contains(got, o.want) || len(x.violations) > 1 {
			t.Errorf("%s: found %q, want %q", o.name, got, o.want)
		}
	}
}
