package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/test/harness"
)

// event is the channel and the message of a notification that a pattern brings.
func event(frame []byte) (channel, message string) {
	parts := strings.Split(string(frame), "\r\n")
	return parts[6], parts[8]
}

// TestKeyspaceEvents: CONFIG SET at one proxy makes all nodes publish what happens to their keys, and those who
// listen at any proxy are told once: by a pattern, by a key or by an event. Copies tell nothing.
func TestKeyspaceEvents(t *testing.T) {
	t.Parallel()
	c := harness.StartCluster(t, 3, 2)
	one, two := c.Proxy(0).Addr, c.Proxy(1).Addr
	harness.AwaitLevel(t, one)
	harness.AwaitLevel(t, two)
	p := harness.DialWire(t, one)
	p.Want("CONFIG SET notify-keyspace-events KEA", "OK")
	all := subscribe(t, two, "PSUBSCRIBE", "__key*__:*")
	sets := subscribe(t, one, "SUBSCRIBE", "__keyevent@0__:set")
	key := subscribe(t, two, "SUBSCRIBE", "__keyspace@0__:key-7")
	const keys = 200 // of all nodes
	var want []string
	for i := range keys {
		name := fmt.Sprintf("key-%d", i)
		p.Want("SET "+name+" v", "OK")
		p.Want("PEXPIRE "+name+" 1", "(integer) 1")
		for _, of := range []string{"set", "expire", "expired"} {
			want = append(want, "__keyspace@0__:"+name+" "+of, "__keyevent@0__:"+of+" "+name)
		}
	}
	var got []string
	of := map[string][]string{} // by key
	for range want {
		channel, message := event(all.Next())
		got = append(got, channel+" "+message)
		if name, ok := strings.CutPrefix(channel, "__keyspace@0__:"); ok {
			of[name] = append(of[name], message)
		}
	}
	for name, events := range of {
		if !slices.Equal(events, []string{"set", "expire", "expired"}) {
			t.Errorf("of %s come %q", name, events)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Error("other events come than there were")
	}
	seen := map[string]bool{}
	for range keys {
		seen[payload(sets.Next())] = true
	}
	if len(seen) != keys {
		t.Errorf("%d of %d keys are told to be set", len(seen), keys)
	}
	for _, want := range []string{"set", "expire", "expired"} {
		if got := payload(key.Next()); got != want {
			t.Errorf("of one key comes %s, want %s", got, want)
		}
	}
	// Nothing comes twice: the next thing is the next event.
	p.Want("SET last v", "OK")
	if channel, message := event(all.Next()); channel != "__keyspace@0__:last" || message != "set" {
		t.Errorf("then %s %s comes", channel, message)
	}
	p.Want("PUBSUB NUMSUB __keyspace@0__:key-7", "1) \"__keyspace@0__:key-7\"\n2) (integer) 1")
	p.Want("PUBLISH __keyspace@0__:key-7 by-hand", "(integer) 2")
	if got := payload(key.Next()); got != "by-hand" {
		t.Errorf("a client's message on such a channel comes as %s", got)
	}
	joins := harness.NewMember(t, "node", "n9")
	joins.Flags = c.Node(0).Flags
	joins.Start()
	harness.Eventually(t, 10*time.Second, "the node that joins has the classes", func() bool {
		w := harness.DialWire(t, joins.Addr)
		defer w.Conn.Close()
		return strings.Contains(string(w.Do("CONFIG GET notify-keyspace-events")), "AKE")
	})
}

// TestKeyspaceEventsOfMoves: partitions move by plan, and no key is told to have changed.
func TestKeyspaceEventsOfMoves(t *testing.T) {
	t.Parallel()
	c := harness.StartCluster(t, 2, 1)
	harness.AwaitLevel(t, c.Proxy(0).Addr)
	p := harness.DialWire(t, c.Proxy(0).Addr)
	for i := range 500 {
		p.Want(fmt.Sprintf("SET key-%d v", i), "OK")
	}
	p.Want("CONFIG SET notify-keyspace-events KAn", "OK")
	all := subscribe(t, c.Proxy(0).Addr, "PSUBSCRIBE", "__keyspace@0__:*")
	joins := harness.NewMember(t, "node", "n9")
	joins.Flags = c.Node(0).Flags
	joins.Start()
	harness.Eventually(t, 60*time.Second, "partitions have moved", func() bool {
		w := harness.DialWire(t, joins.Addr)
		defer w.Conn.Close()
		size := string(w.Do("DBSIZE"))
		return strings.HasPrefix(size, ":") && len(size) >= len(":100\r\n")
	})
	for i := range 500 {
		name := fmt.Sprintf("key-%d", i)
		p.Want("DEL "+name, "(integer) 1")
		if channel, message := event(all.Next()); channel != "__keyspace@0__:"+name || message != "del" {
			t.Fatalf("behind DEL %s comes %s %s", name, channel, message)
		}
	}
}
