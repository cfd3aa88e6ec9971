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
