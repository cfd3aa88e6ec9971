package ring

import (
	"fmt"
	"testing"
)

func BenchmarkTarget(b *testing.B) {
	for _, n := range []int{3, 10, 50, 256} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			ids := sampleIDs(n)
			for b.Loop() {
				Target(ids)
			}
		})
	}
}

func BenchmarkFollowers(b *testing.B) {
	for _, n := range []int{3, 10, 50, 256} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			ids := sampleIDs(n)
			target, _ := Target(ids)
			owner := [Partitions]uint16(target)
			for b.Loop() {
				followers(ids, &owner)
			}
		})
	}
}

func BenchmarkSlot(b *testing.B) {
	for _, key := range []string{"k:12345", "key:000000000123", "user:{1234567}:profile:settings", "session:0123456789abcdef0123456789abcdef"} {
		b.Run(fmt.Sprint(len(key)), func(b *testing.B) {
			k := []byte(key)
			for b.Loop() {
				Slot(k)
			}
		})
	}
}

// BenchmarkPlan plans for a cluster that a node has just joined: most of the moves
// that there can be, and none of them done.
func BenchmarkPlan(b *testing.B) {
	for _, n := range []int{1, 3, 50} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			all := nodes(sampleIDs(n + 1)...)
			cur := Plan(nil, all[:n], nil, all[0], 2, fixedSeed)
			cur = Plan(cur, all, nil, all[0], 2, nil)
			b.ReportMetric(float64(len(cur.Moves)), "moves")
			var reports []*Report
			for _, m := range all {
				reports = append(reports, &Report{Node: m.Name(), Version: cur.Version(), Synced: AllPartitions()})
			}
			for b.Loop() {
				Plan(cur, all, reports, all[0], 2, nil)
			}
		})
	}
}
