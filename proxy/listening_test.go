package proxy

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/ring"
)

// TestListeningWaitsForTheOwnerBefore: a proxy may hear of a table before the node that this takes a channel
// from. That node still publishes, so the proxy ends nothing there, and does not follow, until it obeys.
func TestListeningWaitsForTheOwnerBefore(t *testing.T) {
	c := newCluster(t, 2, oneLoop(t))
	var mu sync.Mutex
	var said []string // to which node, mode, channel and count
	obeys := false
	for i, n := range c.nodes {
		n.set(func(n *fakeNode) {
			n.listen = func(args []string) member.Heard {
				mu.Lock()
				defer mu.Unlock()
				said = append(said, n.name+" "+strings.Join(args[1:], " "))
				if i == 0 && obeys && args[3] != "0" {
					return member.NotOwner
				}
				return member.Noted
			}
		})
	}
	heard := func() []string {
		mu.Lock()
		defer mu.Unlock()
		return said
	}
	c.level = ring.PubSubLevel
	c.route(func(int) int { return 0 })
	s := c.dial()
	s.send("SUBSCRIBE c")
	s.want("*3 $9 subscribe $1 c :1")
	c.route(func(int) int { return 1 })
	begun := time.Now()
	eventually(t, "it asks several times whether the node before obeys", func() bool { return len(heard()) >= 9 })
	if took := time.Since(begun); took < 20*listenPause {
		t.Errorf("it asks 8 times within %v", took)
	}
	for _, line := range heard() {
		if line != "n1 0 c 1" {
			t.Fatalf("before the node obeys, %q is said", line)
		}
	}
	mu.Lock()
	obeys, said = true, nil
	mu.Unlock()
	follows := "n2 2 c 1"
	eventually(t, "it follows", func() bool { l := heard(); return len(l) > 0 && l[len(l)-1] == follows })
	if got := strings.Join(heard(), ", "); got != "n1 0 c 1, n1 0 c 0, "+follows {
		t.Errorf("once the node obeys, %s is said", got)
	}
}

// TestListeningAsksAgain: a node that does not have the proxy's table yet refuses to be the broker. The proxy
// asks again until it does not.
func TestListeningAsksAgain(t *testing.T) {
	c := newCluster(t, 1, oneLoop(t))
	refusals := 5
	c.nodes[0].set(func(n *fakeNode) {
		n.listen = func([]string) member.Heard { // called under n's lock
			if refusals--; refusals >= 0 {
				return member.NotOwner
			}
			return member.Noted
		}
	})
	c.level = ring.PubSubLevel
	c.route(func(int) int { return 0 })
	s := c.dial()
	s.send("SUBSCRIBE c")
	s.want("*3 $9 subscribe $1 c :1")
}
