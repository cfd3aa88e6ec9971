package chaos

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// TestChaosTransfers kills the owner of two accounts while money goes from one to the other in slow
// transactions: the follower that takes over has all of each transaction, or nothing. So the sum stands.
func TestChaosTransfers(t *testing.T) {
	if testing.Short() {
		t.Skip("the cluster takes seconds to reach its level")
	}
	x := newRig(t, 1, Options{Copies: 2})
	const transfers = 3
	teller, auditor := x.newTeller(0), x.newTeller(1)
	if _, err := teller.do("SET {acc}x " + strings.Repeat("abcdefgh", 1400)); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, 20*time.Second, "all understand units", func() bool {
		table := x.Tables.Table()
		return table != nil && table.Level == ring.Level
	})
	harness.Eventually(t, 20*time.Second, "the accounts have a copy", func() bool {
		replies, err := auditor.do("WAIT 1 1000")
		return err == nil && string(replies[0]) == ":1\r\n"
	})
	transfer := []string{"MULTI", "DECRBY {acc}from 1"}
	for range 40 {
		transfer = append(transfer, "LCS {acc}x {acc}x LEN")
	}
	transfer = append(transfer, "INCRBY {acc}to 1", "EXEC")
	for n := range transfers {
		replies, err := teller.do(transfer...)
		if err != nil {
			t.Fatal(err)
		}
		if exec := replies[len(replies)-1]; resp.IsError(exec) {
			t.Fatalf("transfer %d: %q", n, exec)
		}
	}
	if replies, err := teller.do("WAIT 1 0"); err != nil || string(replies[0]) != ":1\r\n" {
		t.Fatalf("the follower has not got the transfers: %q, %v", replies, err)
	}
	name := x.Tables.Table().OwnerOf(ring.PartitionOf([]byte("{acc}"))).ID
	nodes := x.C.ByRole("node")
	owner := nodes[slices.IndexFunc(nodes, func(m *harness.Member) bool { return m.ID == name })]
	holds := func() float64 {
		n, _ := harness.Scrape(t, owner.Admin).Sum("dunlin_node_holds_total")
		return n
	}
	before := holds()
	killed, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			_, err := teller.do(transfer...)
			select {
			case <-killed:
				ended <- err
				return
			default:
			}
			if err != nil {
				ended <- err
				return
			}
		}
	}()
	harness.Eventually(t, 20*time.Second, "another transfer holds the accounts' partition", func() bool { return holds() > before })
	x.Kill(owner)
	close(killed)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	var from, to int
	harness.Eventually(t, 20*time.Second, "the follower serves", func() bool {
		replies, err := auditor.do("MGET {acc}from {acc}to")
		if err != nil || resp.IsError(replies[0]) {
			return false
		}
		_, _ = fmt.Sscanf(strings.ReplaceAll(string(replies[0]), "\r\n", " "), "*2 $%d %d $%d %d", new(int), &from, new(int), &to)
		return true
	})
	if from+to != 0 || to < transfers {
		t.Errorf("the accounts have %d and %d after %d transfers", from, to, transfers)
	}
}

// teller is a client at a proxy.
type teller struct{ *harness.Link }

func (x *Rig) newTeller(proxy int) teller {
	l, err := x.dial(x.C.Proxy(proxy))
	if err != nil {
		x.T.Fatal(err)
	}
	x.T.Cleanup(func() { l.Conn.Close() })
	return teller{l}
}

// do sends requests in one pipeline, and returns their replies.
func (l teller) do(requests ...string) (replies [][]byte, err error) {
	var batch []byte
	for _, r := range requests {
		var words [][]byte
		for _, w := range strings.Fields(r) {
			words = append(words, []byte(w))
		}
		batch = resp.AppendRequest(batch, words...)
	}
	if err := l.Send(batch); err != nil {
		return nil, err
	}
	for range requests {
		reply, err := l.Receive(time.Now().Add(harness.AnswerTime))
		if err != nil {
			return nil, err
		}
		replies = append(replies, bytes.Clone(reply))
	}
	return replies, nil
}
