package metrics

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/figures"
	"github.com/dunlin-cache/dunlin/ring"
)

// twoProcesses are the admin servers of a cluster of six: p and n1 are members of the
// first, n2 of the second, n3 does not answer, at n4's address another process does, and
// n5 has no address.
func twoProcesses(t *testing.T) (first, second *Admin) {
	t.Helper()
	first, second = newAdmin(t, Options{}), newAdmin(t, Options{})
	v := twoNodes()
	v.members = []ring.Member{
		{ID: "n1", Boot: 1, Admin: first.Addr()},
		{ID: "n2", Boot: 2, Admin: second.Addr()},
		{ID: "n3", Boot: 3, Admin: "127.0.0.1:1"},
		{ID: "n4", Boot: 4, Admin: second.Addr()},
		{ID: "n5", Boot: 5},
		{ID: "p", Boot: 9, Role: ring.RoleProxy, Admin: first.Addr()},
	}
	add := func(a *Admin, id string, boot int64, keys int64, hot ...figures.KeyFigure) {
		n := &fakeNode{serving: true}
		n.stats.Keys, n.stats.HotKeys = keys, hot
		a.AddNode(source(id, boot, v), n)
	}
	first.AddProxy(source("p", 9, v), &fakeProxy{ready: true})
	add(first, "n1", 1, 11, figures.KeyFigure{Key: "a", N: 50}, figures.KeyFigure{Key: "b", N: 20})
	add(second, "n2", 2, 22, figures.KeyFigure{Key: "b", N: 30}, figures.KeyFigure{Key: "c", N: 10})
	return first, second
}

func TestReport(t *testing.T) {
	first, _ := twoProcesses(t)
	r, err := ReadReport(t.Context(), first.Addr())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range r.Members {
		got = append(got, m.ID)
	}
	if strings.Join(got, " ") != "n1 n2 p" {
		t.Fatalf("members %v, want n1 n2 p", got)
	}
	if r.Members[1].Keys != 22 {
		t.Errorf("n2 has %d keys, want those of its own admin address", r.Members[1].Keys)
	}
	if len(r.Unreachable) != 3 {
		t.Fatalf("unreachable: %+v, want n3, n4 and n5", r.Unreachable)
	}
	for i, want := range []string{"refused", "other members", "no admin address"} {
		if !strings.Contains(r.Unreachable[i].Error, want) {
			t.Errorf("%s is unreachable because %q, want %q", r.Unreachable[i].ID, r.Unreachable[i].Error, want)
		}
	}
	want := []NodeKey{{HotKey{"a", 50}, "n1"}, {HotKey{"b", 30}, "n2"}}
	if hot := Hottest(r.Members, 2); !slices.Equal(hot, want) {
		t.Errorf("hot are %v, want %v", hot, want)
	}
}

func TestReportWithoutAnAnswer(t *testing.T) {
	if _, err := ReadReport(t.Context(), "127.0.0.1:1"); err == nil || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("error %v, want one with the address", err)
	}
	elsewhere := httptest.NewServer(http.RedirectHandler("http://127.0.0.1:1/api/status", http.StatusFound))
	defer elsewhere.Close()
	if _, err := ReadReport(t.Context(), strings.TrimPrefix(elsewhere.URL, "http://")); err == nil || !strings.Contains(err.Error(), "302") {
		t.Errorf("error %v, want that a redirection is no status", err)
	}
}

// TestLiveOfAllProcesses: a page has the figures of members elsewhere, and says who does not
// answer.
func TestLiveOfAllProcesses(t *testing.T) {
	first, _ := twoProcesses(t)
	var l Live
	for deadline := time.Now().Add(time.Minute); ; {
		l = liveOf(t, first, "/api/live") // may be before the first round has ended
		if len(l.Rows) == 6 && l.Rows[1].Figures != nil || time.Now().After(deadline) {
			break
		}
	}
	if len(l.Rows) != 6 || len(l.Cluster.Peers) != 0 {
		t.Fatalf("rows %+v", l.Rows)
	}
	for i, want := range []struct {
		id, remark string
		keys       int64
		here       bool
	}{{"n1", "", 11, true}, {"n2", "", 22, false}, {"n3", "no answer", -1, false}, {"n4", "no answer", -1, false}, {"n5", "", -1, false}, {"p", "", 0, true}} {
		keys := int64(-1)
		if f := l.Rows[i].Figures; f != nil {
			keys = f.Keys
		}
		if r := l.Rows[i]; r.ID != want.id || r.Remark != want.remark || r.Here != want.here || keys != want.keys {
			t.Errorf("row %+v with %d keys, want %+v", r, keys, want)
		}
	}
	if len(l.Hot) != 3 || l.Hot[2] != (NodeKey{HotKey{"c", 10}, "n2"}) {
		t.Errorf("hot are %+v", l.Hot)
	}
	if _, page := get(t, first, "/"); !strings.Contains(page, `<td class="n">22`) {
		t.Errorf("the page has no keys of n2:\n%s", page)
	}
}

// TestOneRoundAtATime: a member that does not answer holds up nobody, and however many look
// it is asked once.
func TestOneRoundAtATime(t *testing.T) {
	a := newAdmin(t, Options{})
	a.rounds.pause = time.Hour
	var asked atomic.Int32
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		<-r.Context().Done()
	}))
	defer silent.Close()
	v := twoNodes()
	v.members[1].Admin = strings.TrimPrefix(silent.URL, "http://")
	a.AddNode(source("n1", 1, v), &fakeNode{serving: true})
	s := a.Status()
	round := a.beginRound(&s)
	for range 5 {
		if again := a.beginRound(&s); again != round {
			t.Fatal("a second round begins during the first")
		}
	}
	<-round
	if again := a.beginRound(&s); again != nil {
		t.Error("a round begins at once after another")
	}
	if l := liveOf(t, a, "/api/live"); l.Rows[1].Remark != "no answer" || l.Rows[0].Figures == nil {
		t.Errorf("rows %+v, want that n2 does not answer", l.Rows)
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("n2 was asked %d times, want once", n)
	}
}

// TestCloseEndsARound: and none begins afterwards.
func TestCloseEndsARound(t *testing.T) {
	a := newAdmin(t, Options{})
	asked := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
	}))
	defer silent.Close()
	v := twoNodes()
	v.members[1].Admin = strings.TrimPrefix(silent.URL, "http://")
	a.AddNode(source("n1", 1, v), &fakeNode{serving: true})
	s := a.Status()
	round := a.beginRound(&s)
	<-asked
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := a.Close(ctx); err != nil {
		t.Fatal(err)
	}
	select {
	case <-round:
	default:
		t.Error("a round goes on after the end")
	}
	if a.beginRound(&s) != nil {
		t.Error("a round begins after the end")
	}
}

// TestStatusOfMembersAlone is what those who ask all members read.
func TestStatusOfMembersAlone(t *testing.T) {
	first, _ := twoProcesses(t)
	s, err := readStatus(t.Context(), first.Addr(), "?members")
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Members) != 2 || len(s.Cluster.Peers) != 0 || s.Cluster.Name != "herd" {
		t.Errorf("status %+v", s)
	}
}
