package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/dunlin-cache/dunlin/bench/histogram"
)

// PUBLISH to many subscribers of one channel. A batch is published in one pipeline, and the next one when all
// subscribers have all of it. So a batch of one message shows how long it takes to the last subscriber, and a larger
// one how many a second are delivered.
const (
	publishBytes = 64 // of a message
	// publishLeast is how many batches a run has at least.
	publishLeast = 5
)

var (
	publishSubscribers = []int{1, 100, 10_000}
	publishBatches     = []int{1, 16}
)

// The bytes on the wire: all of one kind are alike.
var (
	subscribeRequest = "*2\r\n$9\r\nSUBSCRIBE\r\n$1\r\nc\r\n"
	subscribeReply   = "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n"
	publishMessage   = strings.Repeat("x", publishBytes)
	publishedFrame   = fmt.Sprintf("*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$%d\r\n%s\r\n", publishBytes, publishMessage)
)

// publishPeers are the peers of this part that no other part has.
var publishPeers = []peer{
	clusterOfRedis(backends), atNodes(backends), cluster("dunlin+9", manyBackends, 0), clusterOfRedis(manyBackends), atNodes(manyBackends),
}

// manyBackends is how many nodes the larger clusters have.
const manyBackends = 9

// atNodes is a cluster whose nodes have the subscribers and the publisher, as Redis Cluster has.
func atNodes(nodes int) peer {
	name := fmt.Sprintf("at %d nodes", nodes)
	return peer{name: name, start: func(s *stable, tools map[string]string) (l *live, err error) {
		l, data, err := startCluster(s, tools, name, nodes, 0)
		l.doors = data
		return l, err
	}}
}

// clusterOfRedis is a Redis Cluster whose first server has all slots: channels of classic pub/sub have none.
func clusterOfRedis(servers int) peer {
	name := fmt.Sprint("redis cluster, ", servers)
	return peer{name, []string{redisServer}, func(s *stable, tools map[string]string) (*live, error) {
		return startRedisCluster(s, tools, name, servers)
	}}
}

func startRedisCluster(s *stable, tools map[string]string, name string, servers int) (*live, error) {
	l := &live{name: name}
	var addrs, buses []string
	for i := range servers {
		addr, bus, name := freeAddr(), freeAddr(), fmt.Sprintf("redis-cluster-%d-%d", servers, i)
		addrs, buses = append(addrs, addr), append(buses, bus)
		err := l.addRedis(s, tools, name, addr, "--cluster-enabled", "yes", "--cluster-port", portOf(bus),
			"--cluster-config-file", filepath.Join(s.dir, name+".conf"))
		if err != nil {
			return l, err
		}
	}
	l.addr, l.doors = addrs[0], addrs
	told := 0 // servers that know what they need
	l.serving = func(ctx context.Context) error {
		for ; told < servers; told++ {
			words := []string{"CLUSTER", "ADDSLOTSRANGE", "0", "16383"}
			if told > 0 {
				words = []string{"CLUSTER", "MEET", "127.0.0.1", portOf(addrs[0]), portOf(buses[0])}
			}
			if err := tell(ctx, addrs[told], words...); err != nil {
				return err
			}
		}
		for _, addr := range addrs {
			known := fmt.Sprintf("cluster_known_nodes:%d", servers)
			if err := wantClusterInfo(ctx, addr, "cluster_state:ok", known); err != nil {
				return err
			}
		}
		return nil
	}
	return l, nil
}

// tell executes a command over a connection of its own.
func tell(ctx context.Context, addr string, words ...string) error {
	t, err := dialTalk(ctx, addr)
	if err != nil {
		return err
	}
	defer t.close()
	_, err = t.do(words...)
	return err
}

func portOf(addr string) string { return addr[strings.LastIndexByte(addr, ':')+1:] }

// published is what one run measured.
type published struct {
	deliveries float64 // a second
	cpu        float64 // microseconds of processor time a delivery
	wire       float64 // bytes on the wire a message, with headers and acknowledgements
	waits      histogram.Histogram
}

// runPublish publishes to audiences of all sizes at all peers in turns, and prints what it took.
func (r *race) runPublish(ctx context.Context, o typesOptions, w io.Writer) error {
	rounds, length := r.rounds, r.length
	if o.short {
		rounds, length = 1, r.length/4
	}
	results := map[string][]*published{}
	at := func(l *live, subscribers, batch int) string { return fmt.Sprint(l.name, " ", subscribers, " ", batch) }
	for round := range rounds {
		for _, subscribers := range publishSubscribers {
			for i := range r.live {
				l := r.live[(i+round)%len(r.live)]
				for _, batch := range publishBatches {
					x, err := r.publish(ctx, l, subscribers, batch, length)
					switch {
					case ctx.Err() != nil:
						return context.Cause(ctx)
					case err != nil:
						r.notef("%d messages to %d subscribers on %s failed: %v", batch, subscribers, l.name, err)
					default:
						results[at(l, subscribers, batch)] = append(results[at(l, subscribers, batch)], x)
					}
				}
			}
		}
	}
	var lines []string
	for _, subscribers := range publishSubscribers {
		for _, batch := range publishBatches {
			for _, l := range r.live {
				all := results[at(l, subscribers, batch)]
				if len(all) == 0 {
					continue
				}
				wait := func(q float64) string {
					median := medianOf(all, func(x *published) float64 { return millis(x.waits.Quantile(q)) })
					return strconv.FormatFloat(median, 'f', 2, 64)
				}
				lines = append(lines, fmt.Sprintf("%d\t%d\t%s\t%s\t%s\t%.1f\t%.2f\t%.0f",
					subscribers, batch, l.name, wait(0.5), wait(0.99),
					medianOf(all, func(x *published) float64 { return x.deliveries })/1000,
					medianOf(all, func(x *published) float64 { return x.cpu }),
					medianOf(all, func(x *published) float64 { return x.wire })))
			}
		}
	}
	fmt.Fprintf(w, "\nPUBLISH of %d bytes to one channel, medians of %d rounds: "+
		"ms until the last subscriber has the last message of a batch;\n"+
		"thousand messages that are delivered a second, and µs of the servers' processor time for each;\n"+
		"bytes on the loopback interface for each message that is published, all servers' heartbeats among them.\n\n",
		publishBytes, rounds)
	writeTable(w, "subscribers\tbatch\tpeer\tp50\tp99\tdelivered\tµs\tbytes", lines)
	return nil
}

// publish measures batches of messages for a time.
func (r *race) publish(
	ctx context.Context, l *live, subscribers, batch int, length time.Duration,
) (x *published, err error) {
	fmt.Fprintf(r.say, "%d messages to %d subscribers on %s\n", batch, subscribers, l.name)
	addrs := l.doors
	if addrs == nil {
		addrs = []string{l.addr}
	}
	a, err := seat(ctx, addrs, subscribers, subscribeRequest, subscribeReply)
	if err != nil {
		return nil, err
	}
	defer a.close()
	t, err := dialTalk(ctx, addrs[0])
	if err != nil {
		return nil, err
	}
	defer t.close()
	x = &published{}
	round := func() error {
		begin := time.Now()
		a.want.Add(int64(batch * subscribers * len(publishedFrame)))
		for range batch {
			t.send("PUBLISH", "c", publishMessage)
		}
		if err := t.flush(); err != nil {
			return err
		}
		for range batch {
			if _, err := t.reply(true); err != nil {
				return err
			}
		}
		if err := a.await(ctx); err != nil {
			return err
		}
		x.waits.Add(time.Since(begin), 1)
		return nil
	}
	if err := round(); err != nil { // connections between servers are made at the first message
		return nil, err
	}
	x.waits = histogram.Histogram{}
	before := loopbackBytes()
	c, err := costOf(l, func() (done int, err error) {
		for begin := time.Now(); done < publishLeast || time.Since(begin) < length; done++ {
			if err := round(); err != nil {
				return done, err
			}
		}
		x.wire = float64(loopbackBytes()-before) / float64(done*batch)
		return done, nil
	})
	each := float64(batch * subscribers)
	x.deliveries, x.cpu = c.ops*each, c.cpu/each/1000
	return x, err
}

// loopbackBytes returns how many bytes the loopback interface has carried; 0 if that is not known.
func loopbackBytes() int64 {
	for line := range strings.Lines(readText("/proc/net/dev")) {
		if name, counters, _ := strings.Cut(strings.TrimSpace(line), ":"); name == "lo" {
			received, _, _ := strings.Cut(strings.TrimSpace(counters), " ")
			n, _ := strconv.ParseInt(received, 10, 64)
			return n
		}
	}
	return 0
}
