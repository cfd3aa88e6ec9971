package node

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/zeebo/xxh3"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// TestLargeConditions: values that a goroutine compares with an operand, or of which it makes a digest.
func TestLargeConditions(t *testing.T) {
	n := startLeveled(t, func(c *Config) { c.Memory = 256 << 20 })
	c := dial(t, n.Addr())
	v := bigValue(9<<20, 1)
	other := bytes.Clone(v)
	other[len(other)-1]++
	outside := n.engine.Outside()
	digest := fmt.Sprintf("%016x", xxh3.Hash(v))
	otherDigest := fmt.Sprintf("%016x", xxh3.Hash(other))

	c.wantBig("SET k BIG", v, "OK")
	c.want("DIGEST k", fmt.Sprintf("%q", digest))
	c.wantBig("DELIFEQ k BIG", other, "(integer) 0")
	c.wantBig("DELEX k IFEQ BIG", other, "(integer) 0")
	c.wantBig("DELEX k IFNE BIG", v, "(integer) 0")
	c.want("DELEX k IFDEQ "+otherDigest, "(integer) 0")
	c.want("DELEX k IFDNE "+strings.ToUpper(digest), "(integer) 0")
	c.wantBig("SET k x IFEQ BIG", other, "(nil)")
	c.wantBig("SET k x IFNE BIG GET", v, "BIG")
	c.wantBig("SET k BIG IFEQ BIG EX 100", v, "OK")
	c.wantTTL("k", 100)
	c.wantBig("SET k x IFEQ BIG", v, "OK") // its only long argument is an operand
	c.want("GET k", `"x"`)
	c.wantBig("SET k BIG IFDEQ "+fmt.Sprintf("%016x", xxh3.HashString("x")), v, "OK")
	c.wantBig("SET k BIG IFDNE "+otherDigest+" GET", v, "BIG")
	c.wantBig("SET new BIG IFNE BIG", v, "OK")
	c.wantBig("SET none BIG IFEQ BIG", v, "(nil)")
	c.wantBig("DELIFEQ new BIG", v, "(integer) 1")

	// A transaction waits for the goroutine, and so does a script.
	c.want("MULTI", "OK")
	c.wantBig("DELEX k IFEQ BIG", other, "QUEUED")
	c.want("DIGEST k", "QUEUED")
	c.want("DELEX k IFDEQ "+digest, "QUEUED")
	c.want("EXISTS k", "QUEUED")
	c.want("EXEC", fmt.Sprintf("1) (integer) 0\n2) %q\n3) (integer) 1\n4) (integer) 0", digest))
	c.wantBig("SET k BIG", v, "OK")
	c.want(`EVAL "return {redis.call('DIGEST', KEYS[1]), redis.call('SET', KEYS[1], 'y', 'IFDEQ', ARGV[1])}" 1 k `+digest,
		fmt.Sprintf("1) %q\n2) OK", digest))
	c.want("DEL k", "(integer) 1")
	eventually(t, "memory is given back", func() bool { return n.engine.Outside() <= outside+(1<<20) && pinnedBytes(n) == 0 })
}

// TestLargeConditionsOfMany: of those that replace a long value they have all read, one at a time succeeds.
func TestLargeConditionsOfMany(t *testing.T) {
	n := startLeveled(t, func(c *Config) { c.Memory = 256 << 20 })
	setup := dial(t, n.Addr())
	numbered := func(i uint64) []byte {
		v := bigValue(400<<10, 1)
		binary.BigEndian.PutUint64(v[len(v)-8:], i)
		return v
	}
	setup.wantBig("SET k BIG", numbered(0), "OK")
	var clients sync.WaitGroup
	var stored atomic.Uint64
	for i := range 6 {
		c := dial(t, n.Addr())
		clients.Go(func() {
			for range 15 {
				c.send("GET k")
				old, ok := resp.DecodeBulk(c.read())
				if !ok {
					t.Error("no value")
					return
				}
				old = bytes.Clone(old)
				next := numbered(binary.BigEndian.Uint64(old[len(old)-8:]) + 1)
				condition, operand := []byte("IFEQ"), old
				if i%2 == 0 {
					condition, operand = []byte("IFDEQ"), fmt.Appendf(nil, "%016x", xxh3.Hash(old))
				}
				c.sendArgs([]byte("SET"), []byte("k"), next, condition, operand)
				switch got := c.next(); got {
				case "OK":
					stored.Add(1)
				case "(nil)":
				default:
					t.Errorf("SET answers %.100s", got)
				}
			}
		})
	}
	clients.Wait()
	if stored.Load() < 15 {
		t.Errorf("%d were stored, want each client's at least once in a round", stored.Load())
	}
	setup.wantBig("GET k", numbered(stored.Load()), "BIG")
}
