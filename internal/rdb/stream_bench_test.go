package rdb

import (
	"strconv"
	"testing"
)

func BenchmarkStreamWriter(b *testing.B) {
	w := StreamWriter{Out: func([]byte) error { return nil }}
	x := StreamEntry{Strings: [][]byte{[]byte("field"), nil, []byte("other"), []byte("value")}}
	for i := 0; b.Loop(); i++ {
		x.ID.Seq++
		x.Strings[1] = strconv.AppendInt(x.Strings[1][:0], int64(i), 10)
		if w.Entry(x); w.Kept() > writePiece {
			_ = w.Flush()
		}
	}
}

func BenchmarkStreamReader(b *testing.B) {
	var m streamModel
	for i := range 100_000 {
		m.entries = append(m.entries, StreamEntry{StreamID{1, uint64(i)}, [][]byte{[]byte("field"), strconv.AppendInt(nil, int64(i), 10), []byte("other"), []byte("value")}})
	}
	m.info = StreamInfo{Len: len(m.entries), Last: StreamID{1, 100_000}, Added: 100_000}
	payload := m.write(b, false)
	b.SetBytes(int64(len(payload)))
	for n := 0; b.Loop(); {
		s, _ := ReadStream(payload)
		for _, ok := s.Entry(); ok; _, ok = s.Entry() {
			n++
		}
	}
}
