package ring

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
)

// fullTable returns a table that uses every field: a fourth node is joining.
func fullTable() *Table {
	alive := nodes("a", "b", "c", "d")
	table := side(nil, alive, 5)
	table = Plan(table, alive, nil, alive[0], 2, fixedSeed)
	return table
}

func TestTableSurvivesEncoding(t *testing.T) {
	table := fullTable()
	checkTable(t, table)
	table.Paused = true
	checkTable(t, table)
	table.Level, table.Gone = GoneLevel, table.Epoch
	checkTable(t, table)
	if n := len(table.Encode()); n > 20<<10 {
		t.Errorf("a table of four nodes takes %d bytes", n)
	}
}

func TestLargestTableFits(t *testing.T) {
	table := fullTable()
	long := Member{
		ID: strings.Repeat("i", MaxID), Addr: strings.Repeat("a", MaxAddr), Admin: strings.Repeat("m", MaxAddr),
		Boot: math.MaxInt64, State: Serving,
	}
	table.Epoch = maxEpoch
	table.Nodes, table.Joined, table.Ancestors, table.Moves = nil, nil, nil, nil
	for i := range MaxNodes {
		m := long
		m.ID = m.ID[:MaxID-2] + string([]byte{'a' + byte(i/16), 'a' + byte(i%16)})
		table.Nodes = append(table.Nodes, m)
		table.Joined = append(table.Joined, maxEpoch)
	}
	for range maxAncestors {
		table.Ancestors = append(table.Ancestors, Version{maxEpoch - 1, long.Name()})
	}
	for p := range Partitions {
		table.Owner[p], table.Follower[p], table.Since[p] = MaxNodes-1, MaxNodes-2, 1
		table.Moves = append(table.Moves, Move{uint16(p), MaxNodes - 1, MaxNodes - 3})
	}
	table.Moves = table.Moves[:Partitions]
	checkTable(t, table)
}

func TestMemberFitsIntoGossip(t *testing.T) {
	m := Member{
		ID: strings.Repeat("i", MaxID), Addr: strings.Repeat("a", MaxAddr), Admin: strings.Repeat("m", MaxAddr),
		Boot: math.MaxInt64, Epoch: maxEpoch,
	}
	m.Issuer = m.Name()
	b := AppendMember(nil, m)
	if len(b) > 512 {
		t.Errorf("the longest member takes %d bytes, want at most 512", len(b))
	}
	got, rest, err := DecodeMember(append(b, "more"...))
	if err != nil || got != m || string(rest) != "more" {
		t.Errorf("decoded %+v and %q, %v, want %+v", got, rest, err, m)
	}
}

func TestDecodeRefusesDamage(t *testing.T) {
	check := func(what string, b []byte) {
		t.Helper()
		if _, err := DecodeTable(b); err == nil {
			t.Errorf("table with %s was decoded", what)
		}
	}
	good := fullTable().Encode()
	check("nothing in it", nil)
	check("its end missing", good[:len(good)-1])
	check("a byte too many", append(bytes.Clone(good), 0))
	check("another magic", append([]byte("X"), good[1:]...))
	for _, i := range []int{3, 4, 20, len(good) / 2, len(good) - 1} {
		damaged := bytes.Clone(good)
		damaged[i] ^= 1
		check("a bit changed", damaged)
	}
	// The version byte is damaged, and not one of a later level.
	later := bytes.Clone(good)
	later[len(codecMagic)] = codecLeveled + 1
	var refusal *LevelError
	if _, err := DecodeTable(later); err == nil || errors.As(err, &refusal) {
		t.Errorf("a table with a damaged version is refused with %v", err)
	}
}

// TestDecodeChecksInvariants encodes impossible tables, with good checksums.
func TestDecodeChecksInvariants(t *testing.T) {
	check := func(what string, damage func(*Table)) {
		t.Helper()
		table := fullTable()
		damage(table)
		if _, err := DecodeTable(table.Encode()); err == nil {
			t.Errorf("table with %s was decoded", what)
		}
	}
	check("no nodes", func(t *Table) { t.Nodes, t.Joined = nil, nil })
	check("an owner that is no node", func(t *Table) { t.Owner[9] = 4 })
	check("a partition without owner", func(t *Table) { t.Owner[9] = NoNode })
	check("a follower that is no node", func(t *Table) { t.Follower[9] = 4 })
	check("a node following itself", func(t *Table) { t.Follower[9] = t.Owner[9] })
	check("data from the future", func(t *Table) { t.Since[9] = t.Epoch + 1 })
	check("data from before the first table", func(t *Table) { t.Since[9] = 0 })
	check("a node from the future", func(t *Table) { t.Joined[1] = t.Epoch + 1 })
	check("a node from before the first table", func(t *Table) { t.Joined[1] = 0 })
	check("a node that has gone from the future", func(t *Table) { t.Level, t.Gone = GoneLevel, t.Epoch+1 })
	check("one node twice", func(t *Table) { t.Nodes[1] = t.Nodes[0] })
	check("a proxy as node", func(t *Table) { t.Nodes[1].Role = RoleProxy })
	check("a leaving node", func(t *Table) { t.Nodes[1].State = Leaving })
	check("an id that no member may have", func(t *Table) { t.Nodes[1].ID = "b\n" })
	check("epoch 0", func(t *Table) { t.Epoch = 0 })
	check("itself as ancestor", func(t *Table) { t.Ancestors[0] = t.Version() })
	check("a move to nowhere", func(t *Table) { t.Moves[0].To = 4 })
	check("a move of no partition", func(t *Table) { t.Moves[0].Partition = Partitions })
	check("a move from another than the owner", func(t *Table) { t.Moves[0].From = t.Moves[0].To })
	check("a move to the follower", func(t *Table) { t.Moves[0].To = t.Follower[t.Moves[0].Partition] })
	check("a partition that moves twice", func(t *Table) { t.Moves[1] = t.Moves[0] })
	check("too many ancestors", func(t *Table) {
		t.Ancestors = make([]Version, maxAncestors+1)
		for i := range t.Ancestors {
			t.Ancestors[i] = Version{1, "a@1"}
		}
	})
}

func FuzzDecodeTable(f *testing.F) {
	f.Add(fullTable().Encode())
	small := side(nil, nodes("a"), 1).Encode()
	f.Add(small)
	f.Add(small[:40])
	f.Add(leveledTable().Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > checksumBytes {
			// Nobody guesses a checksum; put the right one there.
			b = bytes.Clone(b)
			body := b[:len(b)-checksumBytes]
			binary.LittleEndian.PutUint64(b[len(body):], xxhash.Sum64(body))
		}
		table, err := DecodeTable(b)
		if err != nil {
			return
		}
		again, err := DecodeTable(table.Encode())
		if err != nil || !sameTable(again, table) {
			t.Fatalf("decoded table does not survive another encoding: %v", err)
		}
	})
}

func FuzzDecodeMember(f *testing.F) {
	f.Add(AppendMember(nil, node("a", 1)))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, _, err := DecodeMember(b)
		if err != nil {
			return
		}
		again, _, err := DecodeMember(AppendMember(nil, m))
		if err != nil || again != m {
			t.Fatalf("decoded %+v does not survive another encoding: %+v, %v", m, again, err)
		}
	})
}
