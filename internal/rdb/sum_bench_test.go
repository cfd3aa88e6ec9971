package rdb

import "testing"

func BenchmarkSum(b *testing.B) {
	value := make([]byte, 1<<20)
	b.SetBytes(int64(len(value)))
	for b.Loop() {
		Sum(0, value)
	}
}
