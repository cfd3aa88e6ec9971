package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dunlin-cache/dunlin/metrics/status"
)

// dunlin runs a command of the operator's and returns what it prints.
func dunlin(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if code := run(t.Context(), args, &out, &errs); code != 0 {
		t.Fatalf("dunlin %s: exit code %d, %s", strings.Join(args, " "), code, errs.String())
	}
	return out.String()
}

// partitionsOf returns what the table gives to a node, by its id.
func partitionsOf(t *testing.T, admin, id string) (owned, followed int) {
	t.Helper()
	for _, p := range statusOf(t, admin).Cluster.Peers {
		if p.ID == id {
			return p.Partitions, p.Follows
		}
	}
	t.Fatalf("%s is no member", id)
	return 0, 0
}

// TestDrainAndPause steers a cluster that holds keys: a node is drained, takes part
// again, and does not while rebalancing is paused. No key is lost.
func TestDrainAndPause(t *testing.T) {
	const keys = 500
	c := startChild(t, "local", "--listen=127.0.0.1:0", "--memory=64mb", "--nodes=3")
	clients := c.clients()
	c.waitReady()
	var sets strings.Builder
	for i := range keys {
		fmt.Fprintf(&sets, "SET key:%d %d\r\n", i, i)
	}
	ask(t, clients, keys, sets.String())
	complete := func(when string) {
		t.Helper()
		if got := ask(t, clients, 1, "DBSIZE\r\n")[0]; got != fmt.Sprintf(":%d", keys) {
			t.Errorf("%s: DBSIZE is %s, want :%d", when, got, keys)
		}
	}

	// The coordinator: its office goes to another node.
	first := statusOf(t, c.admin).Cluster.Coordinator
	dunlin(t, "drain", first, "--admin", c.admin, "--timeout=30s")
	if owned, followed := partitionsOf(t, c.admin, first); owned != 0 || followed != 0 {
		t.Errorf("drained, %s owns %d partitions and follows %d", first, owned, followed)
	}
	complete("drained")

	dunlin(t, "rebalance", "--pause", "--admin", c.admin)
	dunlin(t, "drain", first, "--undo", "--admin", c.admin)
	eventually(t, "a member of the table", func() error {
		s := statusOf(t, c.admin)
		if len(s.Cluster.Peers) != 4 || s.Cluster.Coordinator != first {
			return fmt.Errorf("coordinator is %q", s.Cluster.Coordinator)
		}
		return nil
	})
	if owned, _ := partitionsOf(t, c.admin, first); owned != 0 {
		t.Errorf("%s got %d partitions while rebalancing is paused", first, owned)
	}
	dunlin(t, "rebalance", "--resume", "--admin", c.admin)
	eventually(t, "back in its place", func() error {
		s := statusOf(t, c.admin).Cluster
		owned, followed := partitionsOf(t, c.admin, first)
		if owned == 0 || followed == 0 || s.Moves > 0 || s.Followed != 4096 {
			return fmt.Errorf("it owns %d partitions and follows %d; %d are moving, %d followed",
				owned, followed, s.Moves, s.Followed)
		}
		return nil
	})
	complete("back")
}

func TestSteeringRefusals(t *testing.T) {
	c := startChild(t, "local", "--listen=127.0.0.1:0", "--memory=64mb", "--nodes=1")
	c.waitReady()
	f := func(want string, args ...string) {
		t.Helper()
		var out, errs bytes.Buffer
		code := run(t.Context(), append(args, "--admin", c.admin), &out, &errs)
		if code != 1 || !strings.Contains(errs.String(), want) {
			t.Errorf("dunlin %s: exit code %d, %q, want 1 with %q", strings.Join(args, " "), code, errs.String(), want)
		}
	}
	f("no such node", "drain", "nobody")
	f("no other node serves", "drain", "node-1")
	f("accepts 1 arg", "drain")
	f("pause resume", "rebalance")
	f("pause resume", "rebalance", "--pause", "--resume")
	f("wrong token", "drain", "node-1", "--secret-file", writeFile(t, "another cluster's secret"))
}

// TestPauseIsRepeated: the coordinator dies before the table that was asked for is issued, and
// its successor before another node has it. Each time the next one is asked.
func TestPauseIsRepeated(t *testing.T) {
	var asked []string
	var mu sync.Mutex
	epochs := map[string]uint64{"n1": 7, "n2": 7, "n3": 7}
	c := status.Cluster{Epoch: 7, Coordinator: "n1"}
	coordinators := map[string]func(){
		"n1": func() { c.Coordinator = "n2" },
		"n2": func() { c.Epoch, c.Paused, epochs["n2"] = 8, true, 8 },
		"n3": func() { c.Epoch, c.Paused, epochs["n3"], epochs["n2"] = 8, true, 8, 8 },
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.Method == http.MethodPost {
			asked = append(asked, c.Coordinator)
			coordinators[c.Coordinator]()
			return
		}
		c.Peers = nil
		for _, id := range slices.Sorted(maps.Keys(epochs)) {
			c.Peers = append(c.Peers, status.Peer{ID: id, Role: "node", Epoch: epochs[id], Admin: r.Host})
		}
		if err := json.NewEncoder(w).Encode(status.Status{Cluster: c}); err != nil {
			t.Error(err)
		}
		if c.Coordinator == "n2" && c.Paused { // it was seen, and dies
			delete(epochs, "n2")
			c.Epoch, c.Paused, c.Coordinator = 7, false, "n3"
			epochs["n1"] = 7
		}
	}))
	defer server.Close()
	dunlin(t, "rebalance", "--pause", "--admin", strings.TrimPrefix(server.URL, "http://"), "--timeout=1m")
	if got := strings.Join(asked, " "); got != "n1 n2 n3" {
		t.Errorf("asked %s, want n1 n2 n3", got)
	}
}
