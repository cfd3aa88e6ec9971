package cluster

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/conversation"
	"github.com/dunlin-cache/dunlin/internal/redistest"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// TestClusterAsRedis checks that a node that owns all slots describes itself as a real one does.
// Ids, addresses and the state of the real one differ.
func TestClusterAsRedis(t *testing.T) {
	redistest.Want(t, "7.")
	real := &conversation.Socket{Addr: redistest.Start(t, "--cluster-enabled", "yes",
		"--cluster-announce-ip", "127.0.0.1")}
	real.Connect(t)
	if got := real.Say(t, "CLUSTER ADDSLOTSRANGE 0 16383"); got != "+OK\r\n" {
		t.Fatalf("ADDSLOTSRANGE: %q", got)
	}
	id := strings.Split(real.Say(t, "CLUSTER MYID"), "\r\n")[1]
	ours := New(func() View { return View{Table: tableOf(real.Addr), Self: "node-0"} })
	for _, v := range []resp.Version{resp.RESP2, resp.RESP3} {
		real.Connect(t)
		real.Say(t, fmt.Sprintf("HELLO %d", v))
		f := func(request string, got []byte) {
			t.Helper()
			want := strings.ReplaceAll(real.Say(t, request), id, NodeID("node-0"))
			if string(got) != want {
				t.Errorf("%s in RESP%d: %q, want %q", request, v, got, want)
			}
		}
		f("CLUSTER SLOTS", ours.AppendSlots(nil, v, ""))
		f("CLUSTER SHARDS", ours.AppendShards(nil, v, ""))
		// The port of the bus and the epoch are those of the table.
		bus := regexp.MustCompile(`@\d+ myself,master - 0 0 0 `)
		want := strings.ReplaceAll(bodyOf(real.Say(t, "CLUSTER NODES")), id, NodeID("node-0"))
		want = bus.ReplaceAllString(want, "@0 myself,master - 0 0 1 ")
		if got := bodyOf(string(ours.AppendNodes(nil, v, ""))); got != want {
			t.Errorf("CLUSTER NODES in RESP%d: %q, want %q", v, got, want)
		}
		if got, want := infoNames(string(ours.AppendInfo(nil, v))),
			infoNames(real.Say(t, "CLUSTER INFO")); !slices.Equal(got, want) {
			t.Errorf("CLUSTER INFO in RESP%d: %q, want %q", v, got, want)
		}
	}
}

func infoNames(reply string) (names []string) {
	for _, line := range strings.Split(bodyOf(reply), "\r\n") {
		if name, _, ok := strings.Cut(line, ":"); ok {
			names = append(names, name)
		}
	}
	return names
}

// bodyOf returns a bulk or verbatim string without its header.
func bodyOf(reply string) string {
	body, _ := resp.DecodeBulk([]byte(reply))
	return string(bytes.TrimPrefix(body, []byte("txt:")))
}
