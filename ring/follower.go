package ring

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// The follower of a partition is its owner in the ring without its owner: where
// the partition goes if the owner dies, so that whoever has the copy is the one who
// takes over.
//
// That takes one ring per node, and with the ring's library 5 s for 50 nodes (2
// cores, Xeon), longer than a crash may take to be dealt with. The rings differ in
// one node only, though, so here the points are hashed and sorted once, and each
// ring is a walk over them that passes over one node: 50 rings take 10 ms. A test
// holds this walk equal to Target.

// point is a place of a node on the circle of hashes. Each node has many.
type point struct {
	hash uint64
	node uint16
}

// circle is the ring of ids before partitions are dealt out.
type circle struct {
	points []point
	nodes  int
	// start[p] is the point from which on partition p looks for a node with room.
	start [Partitions]int
}

func newCircle(ids []string) *circle {
	c := &circle{nodes: len(ids), points: make([]point, 0, len(ids)*replication)}
	for i, id := range ids {
		for r := range replication {
			hash := xxhash.Sum64String(fmt.Sprintf("%d:%s", r, id))
			c.points = append(c.points, point{hash, uint16(i)})
		}
	}
	slices.SortFunc(c.points, func(a, b point) int { return cmp.Compare(a.hash, b.hash) })
	for p := range c.start {
		var key [8]byte
		binary.LittleEndian.PutUint64(key[:], uint64(p))
		i, _ := slices.BinarySearchFunc(c.points, xxhash.Sum64(key[:]), func(at point, hash uint64) int {
			return cmp.Compare(at.hash, hash)
		})
		c.start[p] = i % len(c.points) // past the last point comes the first
	}
	return c
}

// without deals all partitions out to the nodes other than one: each to the first
// node from its start on that has not yet its share of 1.10 times the mean.
func (c *circle) without(one uint16) (owner [Partitions]uint16) {
	room := make([]int, c.nodes)
	for i := range room {
		room[i] = int(math.Ceil(float64(Partitions) / float64(c.nodes-1) * loadBound))
	}
	room[one] = 0
	for p, i := range c.start {
		for room[c.points[i].node] == 0 {
			i = (i + 1) % len(c.points)
		}
		owner[p] = c.points[i].node
		room[owner[p]]--
	}
	return owner
}

// followers returns the follower of each partition, given the ring's ids, at least
// two, and the owners.
func followers(ids []string, owner *[Partitions]uint16) (follower [Partitions]uint16) {
	c := newCircle(ids)
	for i := range uint16(len(ids)) {
		heirs := c.without(i)
		for p, o := range owner {
			if o == i {
				follower[p] = heirs[p]
			}
		}
	}
	return follower
}
