package main

import (
	"cmp"
	"context"
	"encoding/gob"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/ring"
)

func init() { cases["density"] = densityCase }

// densityQuestion says with what a process is filled.
type densityQuestion struct {
	Keys, KeyLen, ValueLen int
	// Mixed draws the lengths of values from 1 to 2*ValueLen-1. Their mean is ValueLen.
	Mixed bool
	TTL   bool
}

// densityAnswer has bytes per key beyond key and value.
type densityAnswer struct {
	Resident float64 // by the growth of resident memory
	Counted  float64 // by the memory that the engine or redis-server reports
}

// The targets in bytes per key.
const (
	densityTarget    = 33
	densityTargetTTL = 41
)

func printDensity(_ context.Context, out io.Writer, o options) error {
	keys := [sizes]int{10_000_000, 1_000_000, 20_000}[o.size]
	if o.keys > 0 {
		keys = o.keys
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(out, "%d keys. Growth of resident memory for each key, in bytes beyond key and value (in parentheses: by its own account)\n\n", keys)
	fmt.Fprintln(t, "key\tvalue\tTTL\tdunlin\tredis-server\ttarget\t")
	for _, q := range []densityQuestion{
		{Keys: keys, KeyLen: 16, ValueLen: 64},
		{Keys: keys, KeyLen: 16, ValueLen: 64, TTL: true},
		{Keys: keys, KeyLen: 36, ValueLen: 224},
		{Keys: keys, KeyLen: 36, ValueLen: 224, TTL: true},
		{Keys: keys, KeyLen: 36, ValueLen: 224, Mixed: true},
		{Keys: keys, KeyLen: 36, ValueLen: 224, Mixed: true, TTL: true},
	} {
		fmt.Fprintf(o.say, "density: %+v\n", q)
		var a densityAnswer
		if err := runCase("density", q, &a); err != nil {
			return err
		}
		redis := "-"
		if r, err := redisDensity(q); err != nil {
			fmt.Fprintf(out, "redis-server is left out: %v\n", err)
		} else {
			redis = r.String()
		}
		fmt.Fprintf(t, "%s\t%v\t%s\t%s\t\n", q.title(), a, redis, q.verdict(a))
	}
	return t.Flush()
}

func (a densityAnswer) String() string { return fmt.Sprintf("%.1f (%.1f)", a.Resident, a.Counted) }

func (q *densityQuestion) title() string {
	ttl, value := "no", strconv.Itoa(q.ValueLen)
	if q.TTL {
		ttl = "yes"
	}
	if q.Mixed {
		value = fmt.Sprintf("1-%d", 2*q.ValueLen-1)
	}
	return fmt.Sprintf("%d\t%s\t%s", q.KeyLen, value, ttl)
}

func (q *densityQuestion) verdict(a densityAnswer) string {
	target, verdict := densityTarget, "reached"
	if q.TTL {
		target = densityTargetTTL
	}
	if a.Resident > float64(target) {
		verdict = "NOT reached"
	}
	return fmt.Sprintf("%d %s", target, verdict)
}

// valueLen is the length of the value of key i.
func (q *densityQuestion) valueLen(i int) int {
	if !q.Mixed {
		return q.ValueLen
	}
	return 1 + int(uint32(i)*0x9E3779B9>>8)%(2*q.ValueLen-1)
}

// bytes returns the bytes of all keys and values.
func (q *densityQuestion) bytes() (n int64) {
	for i := range q.Keys {
		n += int64(q.KeyLen + q.valueLen(i))
	}
	return n
}

// answer takes two pairs of resident and counted bytes, before and after.
func (q *densityQuestion) answer(resident0, resident, counted0, counted int64) densityAnswer {
	per := func(n int64) float64 { return float64(n-q.bytes()) / float64(q.Keys) }
	return densityAnswer{Resident: per(resident - resident0), Counted: per(counted - counted0)}
}

// densityCase fills an engine and looks at its own process.
func densityCase(in *gob.Decoder, out *gob.Encoder) error {
	var q densityQuestion
	if err := in.Decode(&q); err != nil {
		return err
	}
	cores := runtime.GOMAXPROCS(0)
	value := make([]byte, 2*q.ValueLen)
	debug.FreeOSMemory()
	before, err := residentBytes(0)
	if err != nil {
		return err
	}
	e, err := engine.New(engine.Config{MaxBytes: 2*q.bytes() + 64<<20, Shards: engine.ShardsFor(cores, 2*q.bytes()+64<<20)})
	if err != nil {
		return err
	}
	defer e.Close()
	now := time.Now().UnixMilli()
	at := int64(0)
	if q.TTL {
		at = now + time.Hour.Milliseconds()
	}
	err = split(cores, q.Keys, func(_, from, to int) error {
		key := newKey(q.KeyLen)
		for i := from; i < to; i++ {
			putKey(key, uint32(i))
			t := e.Lock(ring.PartitionOf(key), now)
			err := t.Set(key, value[:q.valueLen(i)], engine.TypeString, at)
			t.Unlock()
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if n := sumCounts(e); n != q.Keys {
		return fmt.Errorf("the engine has %d of %d keys", n, q.Keys)
	}
	debug.FreeOSMemory()
	after, err := residentBytes(0)
	if err != nil {
		return err
	}
	return out.Encode(q.answer(before, after, 0, e.Used()))
}

// redisDensity fills a redis-server in the same way.
func redisDensity(q densityQuestion) (a densityAnswer, err error) {
	server, err := startRedis()
	if err != nil {
		return a, err
	}
	defer server.close()
	c, err := server.dial()
	if err != nil {
		return a, err
	}
	defer c.close()
	counted0, err1 := c.usedMemory()
	resident0, err2 := residentBytes(server.pid())
	if err := cmp.Or(err1, err2); err != nil {
		return a, err
	}
	if err := q.fillRedis(c); err != nil {
		return a, err
	}
	if err := q.settleRedis(c); err != nil {
		return a, err
	}
	counted, err1 := c.usedMemory()
	resident, err2 := residentBytes(server.pid())
	return q.answer(resident0, resident, counted0, counted), cmp.Or(err1, err2)
}

func (q *densityQuestion) fillRedis(c *redisClient) error {
	key, value := newKey(q.KeyLen), make([]byte, 2*q.ValueLen)
	set, ex, ttl := []byte("SET"), []byte("EX"), []byte("3600")
	return c.pipeline(q.Keys, func(i int) {
		putKey(key, uint32(i))
		if q.TTL {
			c.send(set, key, value[:q.valueLen(i)], ex, ttl)
		} else {
			c.send(set, key, value[:q.valueLen(i)])
		}
	})
}

// settleRedis looks up every key. Each lookup advances the growth of the server's tables, which
// would otherwise still have an old and a new one.
func (q *densityQuestion) settleRedis(c *redisClient) error {
	const atOnce = 64
	var command [1 + atOnce][]byte
	command[0] = []byte("EXISTS")
	for k := range atOnce {
		command[1+k] = newKey(q.KeyLen)
	}
	return c.pipeline(q.Keys/atOnce, func(i int) {
		for k, key := range command[1:] {
			putKey(key, uint32(i*atOnce+k))
		}
		c.send(command[:]...)
	})
}
