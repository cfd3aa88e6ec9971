package ring

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// The follower of a partition is the node that owns the partition in the ring without its owner. So
// the copy is where the partition goes when the owner dies (failover).
//
// That takes one ring for each node. With the ring's library, 50 rings take 5 s (2 cores, Xeon),
// longer than the handling of a crash may take. But the rings differ in one node only. So this code
// hashes and sorts the points once, and each ring is a walk over them that skips one node: 50 rings
// take 10 ms. A test checks this walk against Target.

// point is a position of a node on the circle of hashes. Each node has many points.
type point struct {
	hash uint64
	node uint16
}

// circle is the ring of ids before the partitions are assigned.
type circle struct {
	points []point
	nodes  int
	// start[p] is the index of the first point at which partition p looks for a node with room.
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

// without assigns all partitions to the nodes other than one. Each partition goes to the first
// node, from its start on, that has not yet its share of 1.10 times the mean.
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

// followers returns the follower of each partition. ids are the ring's ids, at least two, and owner
// has each partition's owner.
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
