package ring

import (
	"fmt"
	"testing"
)

func sampleIDs(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("node-%03d", i)
	}
	return ids
}

func BenchmarkTarget(b *testing.B) {
	for _, n := range []int{3, 10, 50} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			ids := sampleIDs(n)
			for b.Loop() {
				Target(ids)
			}
		})
	}
}

func BenchmarkFollowers(b *testing.B) {
	for _, n := range []int{3, 10, 50} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			ids := sampleIDs(n)
			owner, _ := Target(ids)
			for b.Loop() {
				followers(ids, owner)
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
