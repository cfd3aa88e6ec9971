package cluster

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// TestPasswordIsNoProof checks that a client that knows the password cannot act as a member, even
// if the process has no secret.
func TestPasswordIsNoProof(t *testing.T) {
	t.Parallel()
	m := startLocal(t, "--nodes", "1", "--memory", "64mb", "--requirepass", password)
	w := harness.DialWire(t, portAfter(m.Addr, 1))
	w.Want(`AUTH "pass word\"\\"`, "OK")
	w.Want("DUNLIN TABLE", "(error) NOAUTH Authentication required.")
	// What members derived from the password.
	derived := sha256.Sum256([]byte("dunlin internal secret\x00" + password))
	for _, secret := range [][]byte{derived[:], []byte(password), nil} {
		if _, err := member.FetchTable(t.Context(), nil, portAfter(m.Addr, 1), secret); err == nil {
			t.Errorf("a proof by %q is believed", secret)
		}
	}
}

// TestRotation changes the password and the cluster's secret of processes under load: no command
// fails and no write is lost, and members that join on the way get in.
func TestRotation(t *testing.T) {
	t.Parallel()
	const oldSecret, newSecret = "the old secret of the cluster", "the new secret of the cluster"
	secret, pass := writeFile(t, "secret", oldSecret+"\n"), writeFile(t, "password", "old\n")
	c := harness.StartClusterWith(t, harness.StartOptions{Nodes: 2, Proxies: 1,
		Flags: []string{"--secret-file", secret, "--requirepass-file", pass}})
	var current atomic.Value // the password that clients use
	current.Store("old")
	stop, load := make(chan struct{}), sync.WaitGroup{}
	for i := range 4 {
		load.Go(func() { writeAndCheck(t, c.Proxy(0).Addr, fmt.Sprint("k", i), i%2 == 0, &current, stop) })
	}

	renewals := 0.0
	change := func(secrets, passwords string) {
		t.Helper()
		replace(t, secret, secrets)
		replace(t, pass, passwords)
		renewals += 2
		harness.Eventually(t, harness.ReadyTimeout, "all members have read the files", func() bool {
			for _, m := range c.Members[:3] {
				if n, err := m.Figure("dunlin_credentials_renewals_total"); err != nil || n < renewals {
					return false
				}
			}
			return true
		})
	}
	join := func(id string) {
		t.Helper()
		m := harness.NewMember(t, "node", id)
		m.Flags = c.Members[0].Flags
		c.Members = append(c.Members, m)
		m.Start()
	}
	change(oldSecret+"\n"+newSecret, "old\nnew")
	current.Store("new")
	change(newSecret+"\n"+oldSecret, "new\nold")
	join("n3")
	change(newSecret, "new")
	if got := string(harness.DialWire(t, c.Proxy(0).Addr).Do("AUTH old")); got != "+OK\r\n" {
		t.Errorf("the password that was just removed: %q", got)
	}
	c.Node(1).Term(harness.ReadyTimeout) // the next pipes and streams are opened with the new secret alone
	c.Node(1).Start()
	c.Converge(harness.ReadyTimeout)
	close(stop)
	load.Wait()

	for _, x := range []struct {
		secret string
		member bool
	}{{oldSecret, false}, {newSecret, true}} {
		_, err := member.FetchTable(t.Context(), nil, c.Node(0).Addr, []byte(x.secret))
		if (err == nil) != x.member {
			t.Errorf("greeting with %q: %v", x.secret, err)
		}
	}
	// An unusable file changes nothing.
	replace(t, secret, "short")
	harness.Eventually(t, harness.ReadyTimeout, "the failure is counted", func() bool {
		n, _ := harness.Scrape(t, c.Node(0).Admin).Sum(`dunlin_credentials_renewals_total{file="secret-file",result="failed"}`)
		return n == 1
	})
	if _, err := member.FetchTable(t.Context(), nil, c.Node(0).Addr, []byte(newSecret)); err != nil {
		t.Error(err)
	}
}

// replace puts a new file in the place of another, as orchestrators do.
func replace(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.WriteFile(path+".new", []byte(text), 0o600), os.Rename(path+".new", path)); err != nil {
		t.Fatal(err)
	}
}

// writeAndCheck increments a key until stop is closed, on one connection or on a new one for every
// round. No reply may be an error or have another value.
func writeAndCheck(t *testing.T, addr, key string, stays bool, password *atomic.Value, stop chan struct{}) {
	var link *harness.Link
	for n := 1; ; n++ {
		select {
		case <-stop:
			return
		case <-time.After(2 * time.Millisecond):
		}
		var request []byte
		want := fmt.Sprintf("+OK\r\n$%d\r\n%d\r\n", len(fmt.Sprint(n)), n)
		if link == nil || !stays {
			var err error
			if link, err = harness.DialLink(addr); err != nil {
				t.Errorf("%s: %v", key, err)
				return
			}
			request = resp.AppendRequest(request, []byte("AUTH"), []byte(password.Load().(string)))
			want = "+OK\r\n" + want
		}
		request = resp.AppendRequest(request, []byte("SET"), []byte(key), fmt.Append(nil, n))
		request = resp.AppendRequest(request, []byte("GET"), []byte(key))
		err := link.Send(request)
		var got strings.Builder
		for err == nil && got.Len() < len(want) {
			var reply []byte
			reply, err = link.Receive(time.Now().Add(harness.AnswerTime))
			got.Write(reply)
		}
		if err != nil || got.String() != want {
			t.Errorf("%s in round %d: %q, %v, want %q", key, n, got.String(), err, want)
			return
		}
		if !stays {
			link.Conn.Close()
		}
	}
}
