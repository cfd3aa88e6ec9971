package page

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/figures"
	"github.com/dunlin-cache/dunlin/metrics/fake"
	"github.com/dunlin-cache/dunlin/metrics/status"
	"github.com/dunlin-cache/dunlin/node"
	"github.com/dunlin-cache/dunlin/ring"
)

// newPage returns the page of a process, which asks other processes each time.
func newPage(t *testing.T, l *status.Local) *Page {
	p := New(t.Context(), l, noToken)
	p.pause = 0
	return p
}

// get returns the body of the answer to GET / or /api/live.
func get(p *Page, path string) string {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	if r.URL.Path == "/" {
		p.Serve(w, r)
	} else {
		p.ServeLive(w, r)
	}
	return w.Body.String()
}

func liveOf(t *testing.T, p *Page, path string) (l Live) {
	t.Helper()
	body := get(p, path)
	if err := json.Unmarshal([]byte(body), &l); err != nil {
		t.Fatalf("cannot decode %q: %v", body, err)
	}
	return l
}

// TestLive checks the owners, the moves, the nodes that are gone, and the hot and big keys.
func TestLive(t *testing.T) {
	a := fake.NewLocal(t)
	p := newPage(t, a)
	view := fake.TwoNodes()
	view.Holds.Moves = []ring.Move{{Partition: 9, From: 1, To: 0}}
	view.Alive = view.Alive[:1]
	n := &fake.Node{Up: true}
	n.Figures.Engine.Index = 64
	n.Figures.BigKeys = []figures.KeyFigure{{Key: "big", Database: 3, N: 7}}
	n.Figures.Pinned = []node.PinnedStats{{Database: 8, Keys: 5, Crowds: true}}
	a.AddNode(fake.Source("n1", 1, view), n)
	a.AddProxy(fake.Source("p", 3, view), &fake.Proxy{Up: true})

	l := liveOf(t, p, "/api/live")
	if len(l.Owners) != ring.Partitions || l.Owners[4] != 0 || l.Owners[3] != 1 {
		t.Errorf("%d owners, the first %v", len(l.Owners), l.Owners[:min(len(l.Owners), 8)])
	}
	if len(l.Nodes) != 2 || !l.Nodes[0].Alive || l.Nodes[1].Alive {
		t.Errorf("nodes %+v, want n2 to be gone", l.Nodes)
	}
	if len(l.Rows) != 2 || l.Rows[1].ID != "n2" || l.Rows[1].State != gone ||
		l.Rows[1].Partitions != 2048 || l.Alive != 1 {
		t.Errorf("rows %+v, want n2 to be gone with what it owns", l.Rows)
	}
	if len(l.Moves) != 1 || l.Moves[0] != (LiveMove{9, 1, 0}) {
		t.Errorf("moves %+v", l.Moves)
	}
	if len(l.Here) != 2 || len(l.Here[0].Slow) != 1 || l.Here[0].Slow[0].Micros != 12000 {
		t.Errorf("here are %+v", l.Here)
	}
	if big := l.Here[0].Big; len(big) != 1 || big[0] != (LiveKey{"big", 3, 7}) {
		t.Errorf("big are %+v", big)
	}
	if want := (status.NodePinned{Pinned: status.Pinned{Database: 8, Keys: 5, Crowds: true}, Node: "n1"}); len(l.Pinned) != 1 || l.Pinned[0] != want {
		t.Errorf("pinned are %+v", l.Pinned)
	}
	index := int64(0)
	for _, share := range l.Here[0].Memory {
		if share.Class == "index" {
			index = share.Bytes
		}
	}
	if index != 64 {
		t.Errorf("memory %+v, want 64 bytes of index", l.Here[0].Memory)
	}
	if again := liveOf(t, p, "/api/live?table="+url.QueryEscape(l.Table)); again.Owners != nil ||
		again.Cluster.Epoch != 7 {
		t.Errorf("a reader that has table %q is sent %d owners of it", l.Table, len(again.Owners))
	}
	view.Holds.Issuer = "n1@2" // the cluster was started anew
	if again := liveOf(t, p, "/api/live?table="+url.QueryEscape(l.Table)); len(again.Owners) == 0 {
		t.Error("a reader that has another table of the same epoch is not sent the owners")
	}
}

// TestLiveBeforeTheFirstTable checks that lists are empty, not null.
func TestLiveBeforeTheFirstTable(t *testing.T) {
	a := fake.NewLocal(t)
	p := newPage(t, a)
	if body := get(p, "/api/live"); strings.Contains(body, "null") {
		t.Errorf("an empty process answers %s", body)
	}
	a.AddProxy(fake.Source("p", 3, &fake.View{}), &fake.Proxy{})
	if body := get(p, "/api/live"); strings.Contains(body, "null") {
		t.Errorf("a proxy without a table answers %s", body)
	}
}

// TestPageText checks that the page itself has the state, for readers without scripts, and that
// names of other members are never markup.
func TestPageText(t *testing.T) {
	a := fake.NewLocal(t)
	p := newPage(t, a)
	view := fake.TwoNodes()
	view.Alive[1].ID = "<script>alert(1)</script>"
	n := &fake.Node{Up: true}
	n.Figures.Hits, n.Figures.Misses, n.Figures.Keys = 3, 1, 1234567
	n.Figures.Engine.Used, n.Figures.Engine.Max = 1536, 1<<20
	view.Holds.Moves = []ring.Move{{Partition: 9, From: 1, To: 0}}
	a.AddNode(fake.Source("n1", 1, view), n)
	body := get(p, "/")
	for _, want := range []string{"herd", "epoch 7", "3 members alive", "leaving", "75.0 %",
		"1.5 KiB of 1 MiB", "1,234,567", "2,048", "1 partition moving", "&lt;script&gt;"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page has no %q:\n%s", want, body)
		}
	}
	if strings.Contains(body, "<script>alert") {
		t.Error("a member's id is markup")
	}
}

// TestLiveOfAllProcesses checks that a page has the figures of members of other processes, and
// names members that do not answer.
func TestLiveOfAllProcesses(t *testing.T) {
	first, _ := fake.TwoProcesses(t)
	p := New(t.Context(), first, noToken)
	l := liveOf(t, p, "/api/live")
	if len(l.Rows) != 6 || len(l.Cluster.Peers) != 0 {
		t.Fatalf("rows %+v", l.Rows)
	}
	for i, want := range []struct {
		id, remark string
		keys       int64
		here       bool
	}{{"n1", "", 11, true}, {"n2", "", 22, false}, {"n3", "no answer", -1, false},
		{"n4", "no answer", -1, false}, {"n5", "", -1, false}, {"p", "", 0, true}} {
		keys := int64(-1)
		if f := l.Rows[i].Figures; f != nil {
			keys = f.Keys
		}
		if r := l.Rows[i]; r.ID != want.id || r.Remark != want.remark || r.Here != want.here || keys != want.keys {
			t.Errorf("row %+v with %d keys, want %+v", r, keys, want)
		}
	}
	if len(l.Hot) != 3 || l.Hot[2] != (status.NodeKey{HotKey: status.HotKey{Key: "c", Database: 8, UsesPerSecond: 10}, Node: "n2"}) {
		t.Errorf("hot are %+v", l.Hot)
	}
	if page := get(p, "/"); !strings.Contains(page, `<td class="n">22`) {
		t.Errorf("the page has no keys of n2:\n%s", page)
	}
}

// silentProcess is a process whose admin address accepts requests and answers none. asked gets a
// value for each request.
func silentProcess(t *testing.T) (l *status.Local, asked chan struct{}) {
	asked = make(chan struct{}, 100)
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	t.Cleanup(silent.Close)
	v := fake.TwoNodes()
	v.Alive[1].Admin = silent.Listener.Addr().String()
	l = fake.NewLocal(t)
	l.AddNode(fake.Source("n1", 1, v), &fake.Node{Up: true})
	return l, asked
}

// TestOthersAreAskedOnce checks that, however many readers there are, a member that does not answer
// is asked once per pause, and delays them for at most askTime.
func TestOthersAreAskedOnce(t *testing.T) {
	l, asked := silentProcess(t)
	p := New(t.Context(), l, noToken)
	p.pause = time.Hour
	begun := time.Now()
	var readers sync.WaitGroup
	for range 10 {
		readers.Go(func() {
			if l := liveOf(t, p, "/api/live"); l.Rows[1].Remark != "no answer" || l.Rows[0].Figures == nil {
				t.Errorf("rows %+v, want that n2 does not answer", l.Rows)
			}
		})
	}
	readers.Wait()
	if n := len(asked); n != 1 {
		t.Errorf("n2 was asked %d times, want once", n)
	}
	if took := time.Since(begun); took > 10*askTime {
		t.Errorf("the readers waited for %v, want about %v", took, askTime)
	}
}

// TestCloseEndsQuestions checks that a reader does not wait for other processes when its process
// stops.
func TestCloseEndsQuestions(t *testing.T) {
	l, asked := silentProcess(t)
	ctx, stop := context.WithCancel(t.Context())
	p := New(ctx, l, noToken)
	go func() {
		<-asked
		stop()
	}()
	if l := liveOf(t, p, "/api/live"); !strings.Contains(l.Rows[1].Error, "canceled") {
		t.Errorf("row %+v, want that the question was cancelled", l.Rows[1])
	}
}

func noToken() string { return "" }
