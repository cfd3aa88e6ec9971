package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/metrics/status"
)

// fakeAdmin serves a status at an admin address of its own.
func fakeAdmin(t *testing.T, s *status.Status) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/status" {
			http.NotFound(w, r)
			return
		}
		if err := json.NewEncoder(w).Encode(s); err != nil {
			t.Errorf("cannot send status: %v", err)
		}
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func TestPrintReport(t *testing.T) {
	r := &status.Report{
		Cluster: status.Cluster{Name: "herd", Epoch: 7, Partitions: 4096, Followed: 4095, Moves: 12,
			Paused: true, Peers: []status.Peer{
				{ID: "node-1", Boot: 1, Role: "node", State: "serving"},
				{ID: "node-2", Boot: 2, Role: "node", State: "joining"},
				{ID: "node-3", Boot: 3, Role: "node", State: "serving"},
				{ID: "proxy", Boot: 4, Role: "proxy", State: "serving"},
			}},
		Members: []status.Member{
			{ID: "node-1", Boot: 1, Role: "node", Ready: true, Epoch: 7, Partitions: 2048, Keys: 1234567, MemoryUsed: 12 << 20,
				MemoryMax: 1 << 30, Hits: 5, Misses: 5, RecentHits: 982, RecentMisses: 18,
				CommandsPerSecond: 120000.4, Clients: 3, Addr: "127.0.0.1:6380", Pinned: []status.Pinned{
					{Database: 15, Partition: 3855}, {Database: 8, Partition: 2056, Keys: 1000, Bytes: 3 << 20, Share: 0.614, Crowds: true}}},
			{ID: "node-2", Boot: 2, Role: "node", Fenced: true, Epoch: 6, MemoryUsed: 1500, MemoryMax: 1 << 30, Addr: "127.0.0.1:6381",
				Pinned: []status.Pinned{{Database: 9, Partition: 2313, Keys: 2}}},
			{ID: "proxy", Boot: 4, Role: "proxy", Ready: true, Epoch: 7, CommandsPerSecond: 99, Clients: 50, Addr: "127.0.0.1:6379"},
		},
		Unreachable: []status.Unreachable{
			{Peer: status.Peer{ID: "node-3", Role: "node", State: "serving", Epoch: 7, Partitions: 2048, Addr: "127.0.0.1:6382"}, Error: "connection refused"},
			{Peer: status.Peer{ID: "edge", Role: "proxy", State: "leaving", Epoch: 7, Addr: "127.0.0.1:6383"}, Error: "connection refused"},
		},
	}
	const want = `cluster herd   epoch 7   3 nodes, 1 proxy   4096 partitions, 4095 with a follower, 12 moving

MEMBER  ROLE   STATE               EPOCH  PARTITIONS     KEYS            MEMORY  HIT RATIO   OPS/S  CLIENTS  ADDRESS
node-1  node   serving                 7        2048  1234567   12 MiB of 1 GiB     98.2 %  120000        3  127.0.0.1:6380
node-2  node   joining, not ready      6           0        0  1.5 KiB of 1 GiB          -       0        0  127.0.0.1:6381
proxy   proxy  serving                 7           -        -                 -          -      99       50  127.0.0.1:6379
node-3  node   serving                 7        2048        ?                 ?          ?       ?        ?  127.0.0.1:6382
edge    proxy  leaving                 7           -        -                 -          -       ?        ?  127.0.0.1:6383

PINNED       NODE    PARTITION  KEYS  MEMORY  COMMANDS
database 8   node-1  2056       1000   3 MiB      61 %
database 9   node-2  2313          2       ?       0 %
database 15  node-1  3855          0     0 B       0 %

rebalancing is paused: nodes that join get no partitions (dunlin rebalance --resume)

node-2 is fenced: it serves nothing until it receives the current table

node-2 has epoch 6, the cluster 7: a newer table is on its way

pinned database 8 takes more than half of the memory or of the commands of node-1

node-3 did not answer: connection refused

edge did not answer: connection refused
`
	var got strings.Builder
	if err := printReport(&got, r); err != nil {
		t.Fatal(err)
	}
	if got.String() != want {
		t.Errorf("got\n%swant\n%s", got.String(), want)
	}
}
