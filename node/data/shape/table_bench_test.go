package shape

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/dunlin-cache/dunlin/node/engine"
)

var tableSize = flag.Int("table.size", 1_000_000, "elements in BenchmarkTable")

// hashOfCells is the form that Table was measured against: each element in a part of its own, found
// by linear hashing of blocks that have hash and number of each.
type hashOfCells struct {
	v     engine.Parts
	count int
}

const (
	cellBlocks   = 0
	cellElements = 1
	cellEntry    = 8
)

func (c *hashOfCells) bucket(h uint64) (int, []byte) {
	n := bucket(h, c.v.Len(cellBlocks))
	return n, c.v.Part(cellBlocks, n)
}

func cellKey(part []byte) []byte   { return part[2 : 2+part[0]] }
func cellValue(part []byte) []byte { return part[2+int(part[0]) : 2+int(part[0])+int(part[1])] }

func (c *hashOfCells) find(key []byte) (b []byte, at int, element []byte) {
	h := c.v.Hash(key)
	_, b = c.bucket(h)
	n := int(binary.LittleEndian.Uint16(b))
	for i := range n {
		if e := b[2+i*cellEntry:]; binary.LittleEndian.Uint32(e) == uint32(h) {
			if part := c.v.Part(cellElements, int(binary.LittleEndian.Uint32(e[4:]))); string(cellKey(part)) == string(key) {
				return b, i, part
			}
		}
	}
	return b, n, nil
}

func (c *hashOfCells) set(key, value []byte) error {
	h := c.v.Hash(key)
	if n := c.v.Len(cellBlocks); n == 0 || c.count > 32*n {
		if err := c.split(n); err != nil {
			return err
		}
	}
	_, at, part := c.find(key)
	if part != nil {
		copy(cellValue(part), value)
		return nil
	}
	number, _ := c.bucket(h)
	if err := c.v.Reserve(2+len(key)+len(value), 2+(at+1)*cellEntry); err != nil {
		return err
	}
	id, part, err := c.v.Add(cellElements, 2+len(key)+len(value))
	if err != nil {
		return err
	}
	part[0], part[1] = byte(len(key)), byte(len(value))
	copy(part[2:], key)
	copy(part[2+len(key):], value)
	b, err := c.v.Resize(cellBlocks, number, 2+(at+1)*cellEntry)
	if err != nil {
		return err
	}
	binary.LittleEndian.PutUint16(b, uint16(at+1))
	binary.LittleEndian.PutUint32(b[2+at*cellEntry:], uint32(h))
	binary.LittleEndian.PutUint32(b[2+at*cellEntry+4:], uint32(id))
	c.count++
	return nil
}

func (c *hashOfCells) split(n int) error {
	if n == 0 {
		_, b, err := c.v.Add(cellBlocks, 2)
		clear(b)
		return err
	}
	level := bits.Len(uint(n)) - 1
	b := c.v.Part(cellBlocks, n-1<<level)
	var all [][cellEntry]byte
	for i := range int(binary.LittleEndian.Uint16(b)) {
		all = append(all, [cellEntry]byte(b[2+i*cellEntry:]))
	}
	if err := c.v.Reserve(2 + len(all)*cellEntry); err != nil {
		return err
	}
	_, to, err := c.v.Add(cellBlocks, 2+len(all)*cellEntry)
	if err != nil {
		return err
	}
	b = c.v.Part(cellBlocks, n-1<<level)
	kept, moved := 0, 0
	for _, e := range all {
		if binary.LittleEndian.Uint32(e[:])>>level&1 != 0 {
			copy(to[2+moved*cellEntry:], e[:])
			moved++
		} else {
			copy(b[2+kept*cellEntry:], e[:])
			kept++
		}
	}
	binary.LittleEndian.PutUint16(b, uint16(kept))
	binary.LittleEndian.PutUint16(to, uint16(moved))
	_, _ = c.v.Resize(cellBlocks, n-1<<level, 2+kept*cellEntry)
	_, _ = c.v.Resize(cellBlocks, n, 2+moved*cellEntry)
	return nil
}

func (c *hashOfCells) delete(key []byte) {
	b, at, part := c.find(key)
	if part == nil {
		return
	}
	n := int(binary.LittleEndian.Uint16(b)) - 1
	c.v.Free(cellElements, int(binary.LittleEndian.Uint32(b[2+at*cellEntry+4:])))
	copy(b[2+at*cellEntry:2+(at+1)*cellEntry], b[2+n*cellEntry:])
	binary.LittleEndian.PutUint16(b, uint16(n))
	c.count--
}

func (c *hashOfCells) random(draw func(n uint32) uint32) []byte {
	for {
		if part := c.v.Part(cellElements, int(draw(uint32(c.v.Len(cellElements))))); part != nil {
			return part
		}
	}
}

// benchTable is what both forms are measured with.
type benchTable struct {
	set    func(key, value []byte) error
	get    func(key []byte) bool
	delete func(key []byte)
	random func()
	v      engine.Parts
}

func benchElement(buf []byte, i uint64, keyLen int) []byte {
	for at := 0; at < keyLen; at += 8 {
		binary.LittleEndian.PutUint64(buf[at:], (i+uint64(at))*0x9E3779B97F4A7C15)
	}
	return buf[:keyLen]
}

func BenchmarkTable(b *testing.B) {
	n := *tableSize
	r := rand.New(rand.NewPCG(1, 2))
	draw := func(n uint32) uint32 { return r.Uint32N(n) }
	forms := map[string]func(v engine.Parts) benchTable{
		"blocks": func(v engine.Parts) benchTable {
			t, w := &Table{V: v, Blocks: testBlocks, Away: testAway, Items: 2, Now: 1}, &Work{}
			var element [2][]byte
			return benchTable{v: v,
				set: func(key, value []byte) error {
					element[0], element[1] = key, value
					if err := t.Reserve(w, element[:], false); err != nil {
						return err
					}
					_, err := t.Set(key, value, 0)
					return err
				},
				get: func(key []byte) bool {
					e, ok := t.Get(key)
					return ok && e.Value.Len() > 0
				},
				delete: func(key []byte) { t.Delete(key) },
				random: func() { t.Random(draw) },
			}
		},
		"cells": func(v engine.Parts) benchTable {
			c := &hashOfCells{v: v}
			return benchTable{v: v, set: c.set, get: func(key []byte) bool {
				_, _, part := c.find(key)
				return part != nil && len(cellValue(part)) > 0
			}, delete: c.delete, random: func() { c.random(draw) }}
		},
	}
	for _, payload := range [][2]int{{8, 8}, {16, 32}} {
		for _, name := range []string{"blocks", "cells"} {
			var f benchTable
			var e *engine.Engine
			var x engine.Txn
			used := int64(0)
			key, value := make([]byte, 64), make([]byte, payload[1])
			for i := range value {
				value[i] = 'v'
			}
			fill := func(tb testing.TB) {
				e = openEngine(tb, 4<<30)
				used = e.Used()
				x = e.Lock(1, 1)
				f = forms[name](makeValue(tb, x, "table"))
				for i := range n {
					if err := f.set(benchElement(key, uint64(i), payload[0]), value); err != nil {
						tb.Fatal(err)
					}
				}
			}
			each := func(what string, op func(key []byte)) {
				b.Run(fmt.Sprintf("%s/%d+%d/%s", name, payload[0], payload[1], what), func(b *testing.B) {
					for b.Loop() {
						op(benchElement(key, r.Uint64N(uint64(n)), payload[0]))
					}
				})
			}
			b.Run(fmt.Sprintf("%s/%d+%d/insert", name, payload[0], payload[1]), func(b *testing.B) {
				for b.Loop() {
					fill(b)
					b.ReportMetric(float64(f.v.Bytes())/float64(n)-float64(payload[0]+payload[1]), "B/element")
					b.ReportMetric(float64(e.Used()-used)/float64(n)-float64(payload[0]+payload[1]), "charged-B/element")
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/element")
					x.Unlock()
				}
			})
			e, x = nil, engine.Txn{}
			fill(b)
			each("read", func(key []byte) {
				if !f.get(key) {
					b.Fatal("an element is missing")
				}
			})
			each("miss", func(key []byte) {
				key[0]++
				f.get(key)
			})
			each("update", func(key []byte) { _ = f.set(key, value) })
			each("random", func([]byte) { f.random() })
			b.Run(fmt.Sprintf("%s/%d+%d/delete", name, payload[0], payload[1]), func(b *testing.B) {
				for i := range n / 2 {
					f.delete(benchElement(key, uint64(i), payload[0]))
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n/2), "ns/element")
				b.ReportMetric(float64(f.v.Bytes())/float64(n/2)-float64(payload[0]+payload[1]), "B/element")
			})
			x.Unlock()
		}
	}
}
