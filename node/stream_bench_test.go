package node

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
)

// BenchmarkStream measures streams.
// Move: a GB of values of 1 KiB, between two nodes in one process.
// Set: SET in pipelines of 16, fed to nobody and to one.
func BenchmarkStream(b *testing.B) {
	b.Run("Move", func(b *testing.B) { benchmarkMove(b, 1<<30/1024, 1024) })
	b.Run("Set/alone", func(b *testing.B) { benchmarkFedSet(b, false) })
	b.Run("Set/fed", func(b *testing.B) { benchmarkFedSet(b, true) })
}

func benchmarkMove(b *testing.B, keys, size int) {
	from := startNode(b, func(c *Config) { c.Memory, c.Shards = 2<<30, 0 })
	value := string(bytes.Repeat([]byte("v"), size))
	for i := range keys {
		if err := put(from, fmt.Sprintf("key:%d", i), value, engine.TypeString); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() { // mostly once
		to, _ := startReceiver(b, func(c *Config) { c.Memory, c.Shards = 2<<30, 0 })
		begun := time.Now()
		s := from.senders.To(memberOf(to))
		syncAll(s)
		settle(b, s)
		b.ReportMetric(float64(s.Progress().Moved)/1e6/time.Since(begun).Seconds(), "MB/s")
		s.Close()
	}
}

func benchmarkFedSet(b *testing.B, fed bool) {
	from := startNode(b, func(c *Config) { c.Memory, c.Shards = 1<<30, 0; c.Group = newGroup(b, 1) })
	to, _ := startReceiver(b, func(c *Config) { c.Memory, c.Shards = 1<<30, 0; c.Group = newGroup(b, 1) })
	if fed {
		s := from.senders.To(memberOf(to))
		syncAll(s)
		settle(b, s)
	}
	const pipeline, clients = 16, 8
	var out [][]byte
	for i := range 1000 {
		var batch []byte
		for j := range pipeline {
			batch = resp.AppendRequest(batch, []byte("SET"), fmt.Appendf(nil, "key:%d", i*pipeline+j), make([]byte, 100))
		}
		out = append(out, batch)
	}
	b.ResetTimer()
	var wait sync.WaitGroup
	for k := range clients {
		wait.Go(func() {
			c, err := net.Dial("tcp", from.Addr())
			if err != nil {
				b.Error(err)
				return
			}
			defer c.Close()
			replies := make([]byte, pipeline*len("+OK\r\n"))
			for i := range b.N / pipeline / clients {
				_, _ = c.Write(out[(i*7+k*131)%len(out)])
				if _, err := io.ReadFull(c, replies); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wait.Wait()
	b.StopTimer()
}
