package node

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
)

func dialPeer(t *testing.T, n *Node) *member.Peer {
	t.Helper()
	p, err := member.DialPeer(t.Context(), nil, n.Addr(), nil, 5)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// borrow asks for a value, with its version.
func borrow(p *member.Peer, key string) (l member.Lent, payload []byte, err error) {
	var b bytes.Buffer
	l, err = p.Lend(0, []byte(key), true, func(int) (io.Writer, error) { return &b, nil })
	return l, b.Bytes(), err
}

// TestLend: what is lent is what DUMP returns, of values of all sizes, with their times to live and versions.
func TestLend(t *testing.T) {
	n := startLeveled(t)
	c, p := dial(t, n.Addr()), dialPeer(t, n)
	c.want("SET s v PX 100000", "OK")
	c.sendArgs([]byte("SET"), []byte("long"), bytes.Repeat([]byte("x"), 3<<20))
	c.next()
	c.want("SADD set a b c", "(integer) 3")
	for i := range 20 {
		var b strings.Builder
		for j := range 500 {
			fmt.Fprintf(&b, " member%d-%d", i, j)
		}
		c.want("SADD big"+b.String(), "(integer) 500")
	}
	c.want("XADD stream 1-1 f v", `"1-1"`)
	for _, key := range []string{"s", "long", "set", "big", "stream"} {
		l, payload, err := borrow(p, key)
		if err != nil || !l.Found {
			t.Fatalf("%s: %+v, %v", key, l, err)
		}
		if ttl := l.TTL; key == "s" && (ttl <= 0 || ttl > 100_000) || key != "s" && ttl != -1 {
			t.Errorf("%s has %d ms", key, ttl)
		}
		c.sendArgs([]byte("RESTORE"), []byte("{"+key+"}2"), []byte("0"), payload)
		if got := c.next(); got != "OK" {
			t.Errorf("the payload of %s is restored: %s", key, got)
		}
	}
	c.want("STRLEN {long}2", "(integer) 3145728")
	c.want("SCARD {big}2", "(integer) 10000")
	c.want("SDIFF big {big}2", "(empty array)")
	if l, payload, err := borrow(p, "none"); err != nil || l.Found || len(payload) > 0 {
		t.Errorf("a key that is not there: %+v %q, %v", l, payload, err)
	}
}

// TestCede: a key is deleted if it is as it was lent.
func TestCede(t *testing.T) {
	n := startLeveled(t)
	c, p := dial(t, n.Addr()), dialPeer(t, n)
	c.want("SADD k a", "(integer) 1")
	l, _, err := borrow(p, "k")
	if err != nil {
		t.Fatal(err)
	}
	c.want("SADD k b", "(integer) 1")
	if ceded, err := p.Cede(0, []byte("k"), l.Version); err != nil || ceded {
		t.Errorf("a key that has changed is ceded: %v, %v", ceded, err)
	}
	c.want("SCARD k", "(integer) 2")
	if l, _, err = borrow(p, "k"); err != nil {
		t.Fatal(err)
	}
	if ceded, err := p.Cede(0, []byte("k"), l.Version); err != nil || !ceded {
		t.Errorf("a key is not ceded: %v, %v", ceded, err)
	}
	c.want("EXISTS k", "(integer) 0")
	if ceded, err := p.Cede(0, []byte("k"), l.Version); err != nil || ceded {
		t.Errorf("a key is ceded twice: %v, %v", ceded, err)
	}
}

// TestLendRefusals: an asker learns that the key is not here, or not now, and that the value is too large.
func TestLendRefusals(t *testing.T) {
	n := startLeveled(t, func(c *Config) { c.Memory = 512 << 20 })
	c, p := dial(t, n.Addr()), dialPeer(t, n)
	wants := func(key, want string) {
		t.Helper()
		var refused *member.Refusal
		if _, _, err := borrow(p, key); !errors.As(err, &refused) || !strings.HasPrefix(refused.Text, want) {
			t.Errorf("%s is answered by %v, want %s", key, err, want)
		}
	}
	giveAway(n, partitionOf("away"))
	wants("away", "MOVED ")
	n.fenced.Store(true)
	wants("k", "TRYAGAIN ")
	n.fenced.Store(false)
	c.sendArgs([]byte("SET"), []byte("huge"), make([]byte, 64<<20+1))
	c.next()
	wants("huge", "ERR ")
	if l, _, err := borrow(p, "none"); err != nil || l.Found {
		t.Errorf("behind the refusals: %+v, %v", l, err)
	}
	c.want("DUNLIN LEND 16 k 0", "(error) "+errBadLend)
	c.want("DUNLIN CEDE 16 k v", "(error) "+errBadLend)
}

// TestLendWaitsForAHold: what a transaction has half done is lent to nobody.
func TestLendWaitsForAHold(t *testing.T) {
	n := startLeveled(t)
	c, p := dial(t, n.Addr()), dialPeer(t, n)
	c.want("SET {k} v", "OK")
	h := holdPartition(n, "{k}")
	lent := make(chan error, 1)
	go func() {
		_, _, err := borrow(p, "{k}")
		lent <- err
	}()
	select {
	case err := <-lent:
		t.Errorf("it is lent while it is held: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	h.End()
	if err := came(t, "the loan", lent); err != nil {
		t.Error(err)
	}
}
