package status_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/metrics/fake"
	"github.com/dunlin-cache/dunlin/metrics/status"
	"github.com/dunlin-cache/dunlin/node"
	"github.com/dunlin-cache/dunlin/ring"
)

func get(l *status.Local, path string) string {
	w := httptest.NewRecorder()
	l.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w.Body.String()
}

func hot(key string, uses int64, node string) status.NodeKey {
	return status.NodeKey{HotKey: status.HotKey{Key: key, UsesPerSecond: uses}, Node: node}
}

func TestStatus(t *testing.T) {
	l := fake.NewLocal(t)
	p := &fake.Proxy{Up: true}
	p.Figures.Commands[command.Get] = 3
	p.Figures.Commands[command.Set] = 4
	p.Figures.Clients, p.Figures.Blocked, p.Figures.Subscriptions = 2, 3, 4
	l.AddProxy(fake.Source("p", 3, fake.TwoNodes()), p)

	body := get(l, "/api/status")
	var s status.Status
	if err := json.Unmarshal([]byte(body), &s); err != nil {
		t.Fatalf("cannot decode %q: %v", body, err)
	}
	if c := s.Cluster; c.Name != "herd" || c.Epoch != 7 || c.Issuer != "n1@1" || c.Partitions != 4096 ||
		len(c.Peers) != 3 {
		t.Errorf("cluster %+v", c)
	}
	wantPeer := status.Peer{ID: "n2", Boot: 2, Role: "node", State: "leaving", Epoch: 6,
		Addr: "10.0.0.2:6380", Partitions: 2048}
	if s.Cluster.Peers[1] != wantPeer {
		t.Errorf("peer %+v, want %+v", s.Cluster.Peers[1], wantPeer)
	}
	m := s.Members[0]
	if m.UptimeSeconds <= 0 {
		t.Errorf("uptime %v s", m.UptimeSeconds)
	}
	m.UptimeSeconds = 0
	want := status.Member{ID: "p", Boot: 3, Role: "proxy", Addr: "10.9.9.9:6379", Ready: true, Epoch: 7,
		Clients: 2, Waiting: 3, Subscriptions: 4, Commands: 7, RecentSeconds: 1, CommandsPerSecond: 7}
	if !reflect.DeepEqual(m, want) {
		t.Errorf("member %+v, want %+v", m, want)
	}
}

// TestStatusBeforeTheFirstTable checks that lists are empty, not null, and that nothing panics.
func TestStatusBeforeTheFirstTable(t *testing.T) {
	l := fake.NewLocal(t)
	if body := get(l, "/api/status"); !strings.Contains(body, `"members": []`) || !strings.Contains(body, `"peers": []`) {
		t.Errorf("status of an empty process: %s", body)
	}
	l.AddProxy(fake.Source("p", 3, &fake.View{}), &fake.Proxy{})
	if body := get(l, "/api/status"); !strings.Contains(body, `"epoch": 0`) || !strings.Contains(body, `"peers": []`) {
		t.Errorf("status without a table: %s", body)
	}
}

func TestReport(t *testing.T) {
	_, addr := fake.TwoProcesses(t)
	r, err := status.ReadReport(t.Context(), addr)
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
	want := []status.NodeKey{hot("a", 50, "n1"), hot("b", 30, "n2")}
	if got := status.Hottest(r.Members, 2); !slices.Equal(got, want) {
		t.Errorf("hot are %v, want %v", got, want)
	}
	pinned := status.AllPinned(r.Members)
	if len(pinned) != 2 || pinned[0] != (status.NodePinned{Pinned: status.Pinned{Database: 8, Keys: 22}, Node: "n2"}) || pinned[1].Node != "n1" {
		t.Errorf("pinned are %+v", pinned)
	}
}

// TestHottest: keys of one name in two databases are two keys, and those that two nodes name are one.
func TestHottest(t *testing.T) {
	key := func(database uint8, uses int64) status.HotKey {
		return status.HotKey{Key: "k", Database: database, UsesPerSecond: uses}
	}
	got := status.Hottest([]status.Member{
		{ID: "n1", HotKeys: []status.HotKey{key(0, 5), key(3, 9)}}, {ID: "n2", HotKeys: []status.HotKey{key(0, 7)}},
	}, 9)
	if want := []status.NodeKey{{HotKey: key(3, 9), Node: "n1"}, {HotKey: key(0, 7), Node: "n2"}}; !slices.Equal(got, want) {
		t.Errorf("hot are %+v, want %+v", got, want)
	}
}

func TestReportWithoutAnAnswer(t *testing.T) {
	if _, err := status.ReadReport(t.Context(), "127.0.0.1:1"); err == nil ||
		!strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("error %v, want one with the address", err)
	}
	elsewhere := httptest.NewServer(http.RedirectHandler("http://127.0.0.1:1/api/status", http.StatusFound))
	defer elsewhere.Close()
	if _, err := status.ReadReport(t.Context(), strings.TrimPrefix(elsewhere.URL, "http://")); err == nil || !strings.Contains(err.Error(), "302") {
		t.Errorf("error %v, want that a redirection is no status", err)
	}
}

// TestStatusOfMembersAlone checks the answer for readers that ask all members.
func TestStatusOfMembersAlone(t *testing.T) {
	first, _ := fake.TwoProcesses(t)
	var s status.Status
	if err := json.Unmarshal([]byte(get(first, "/api/status?members")), &s); err != nil {
		t.Fatal(err)
	}
	if len(s.Members) != 2 || len(s.Cluster.Peers) != 0 || s.Cluster.Name != "herd" {
		t.Errorf("status %+v", s)
	}
}

// TestStatusShowsCopiesAndMoves checks the figures that an operator watches while nodes come and
// go.
func TestStatusShowsCopiesAndMoves(t *testing.T) {
	v := fake.TwoNodes()
	v.Holds.Follower[0], v.Holds.Follower[1], v.Holds.Follower[3] = 1, 0, 0
	v.Holds.Moves = []ring.Move{{Partition: 4, From: 0, To: 1}}
	v.Holds.Paused = true
	l := fake.NewLocal(t)
	l.AddNode(fake.Source("n1", 1, v), &fake.Node{})
	s := l.Gather()
	c := s.Cluster
	if c.Followed != 3 || c.Moves != 1 || !c.Paused || c.Coordinator != "n1" ||
		c.Peers[1].Follows != 1 || s.Members[0].Follows != 2 {
		t.Errorf("status is %+v, member %+v", c, s.Members[0])
	}
}

// TestMemberThatCannotBeRead checks that a member that cannot be read is shown as not ready, and
// does not hide the others.
func TestMemberThatCannotBeRead(t *testing.T) {
	l := fake.NewLocal(t)
	l.AddProxy(fake.Source("good", 3, fake.TwoNodes()), &fake.Proxy{Up: true})
	l.AddProxy(fake.Source("bad", 4, fake.TwoNodes()), &fake.Proxy{Up: true, Err: errors.New("a loop hangs")})
	if s := l.Gather(); !s.Members[0].Ready || s.Members[1].Ready {
		t.Errorf("members %+v, want the one that answers ready alone", s.Members)
	}
}

// slowNode answers slowly, and counts the questions.
type slowNode struct {
	fake.Node
	takes time.Duration
	asked atomic.Uint64
}

func (n *slowNode) Stats() (node.Stats, error) {
	s := node.Stats{OfClients: n.asked.Add(1)}
	time.Sleep(n.takes)
	return s, nil
}

// TestGather checks that, however many callers there are, there is one visit at a time, with a
// pause between two, and that no caller gets the result of a visit that began before its call.
func TestGather(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const takes, pause = 30 * time.Millisecond, 50 * time.Millisecond
		l := fake.NewLocal(t)
		l.AddNode(fake.Source("n1", 1, fake.TwoNodes()), &slowNode{takes: takes})
		want := func(who string, visit uint64, after time.Duration) {
			t.Helper()
			from := time.Now()
			got := l.Gather().Members[0].Commands
			if took := time.Since(from); got != visit || took != after {
				t.Errorf("%s is given visit %d after %v, want %d after %v", who, got, took, visit, after)
			}
		}
		var all sync.WaitGroup
		all.Go(func() { want("the first", 1, takes) })
		synctest.Wait()
		time.Sleep(takes / 3) // the first visit has begun, so it is too old for later callers
		for range 100 {
			all.Go(func() { want("who comes then", 2, pause-takes/3+takes) })
		}
		all.Wait()
		time.Sleep(time.Hour)
		want("who comes later", 3, takes)
	})
}
