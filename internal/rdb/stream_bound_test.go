package rdb

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestStreamAllocatesLittle reads payloads of a few bytes that declare terabytes.
func TestStreamAllocatesLittle(t *testing.T) {
	huge := "\x81\x00\x00\x01\x00\x00\x00\x00\x00"
	for i, head := range []string{
		"\x13" + huge + text(rawID(1, 0)) + huge,
		"\x13\x01" + text(rawID(1, 0)) + "\xc3\x04" + huge + "\x00a\x20\x00",
		"\x13\x00\x00\x00\x00\x00\x00\x00\x00\x00" + huge + huge,
		"\x13\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x01g\x00\x00\x00" + huge + huge,
		"\x13\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x01g\x00\x00\x00\x00" + huge + "\x01c" + little(1) + huge,
	} {
		payload := withVersion(head, 10)
		if n := testing.AllocsPerRun(100, func() {
			s, err := ReadStream(payload)
			if err != nil {
				t.Fatal(err)
			}
			s.Entry()
			s.Info()
			s.Group()
			s.Consumer()
			s.Pending()
			if s.Err() == nil {
				t.Errorf("%d: no error", i)
			}
		}); n > 1 {
			t.Errorf("%d: %v allocations", i, n)
		}
	}
}

// TestStreamBound reads a stream that needs more memory than there is, or more time.
func TestStreamBound(t *testing.T) {
	many := ints(2, 0, 0)
	for range 50_000 {
		many = append(many, ints(1)...)
	}
	names := ints(1, 0, 50_000)
	for range 50_000 {
		names = append(names, ints(1)...)
	}
	wide := withVersion("\x13\x01"+node(StreamID{1, 0}, names, ints(0), many, ints(50_003))+"\x01\x01\x00\x01\x00\x00\x00\x01\x00", 10)
	if m, err := readModel(wide); err != nil || len(m.entries[0].Strings) != 100_000 {
		t.Fatalf("%v, %d entries", err, len(m.entries))
	}
	var pel, crowd strings.Builder
	for i := range 50_000 {
		pel.WriteString(rawID(uint64(i), 0) + little(1) + "\x01")
		crowd.WriteString(bulk(fmt.Sprint("c", i)) + little(1) + "\x01" + rawID(uint64(i), 0))
	}
	count := string(appendLength(nil, 50_000))
	crowded := withVersion("\x13\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x01g\x00\x00\x00"+count+pel.String()+count+crowd.String(), 10)
	for name, payload := range map[string][]byte{"fields": wide, "consumers": crowded} {
		for limit, want := range map[int]error{100_000: ErrTooLong, 20 << 20: nil} {
			s, err := ReadStream(payload)
			if err != nil {
				t.Fatal(err)
			}
			left := limit
			s.Room = func(n int) bool { left -= n; return left >= 0 }
			read := 0
			for _, ok := s.Entry(); ok; _, ok = s.Entry() {
				read++
			}
			s.Info()
			s.Group()
			for _, ok := s.Consumer(); ok; _, ok = s.Consumer() {
				read++
			}
			for _, ok := s.Pending(); ok; _, ok = s.Pending() {
				read++
			}
			if err := s.Err(); !errors.Is(err, want) || err == nil && (read == 0 || s.Taken == 0 || s.Taken != limit-left) {
				t.Errorf("%s in %d bytes: %v, %d parts, %d bytes taken", name, limit, err, read, s.Taken)
			}
		}
	}
	s, _ := ReadStream(withVersion("\x13\x01"+text(rawID(1, 0))+compressed('x', 5000), 10))
	s.Most = 4999
	if _, ok := s.Entry(); ok || !errors.Is(s.Err(), ErrTooLong) {
		t.Errorf("decompressed more than Most: %v", s.Err())
	}
}

// TestStreamWriterStops has an Out that fails.
func TestStreamWriterStops(t *testing.T) {
	full := errors.New("full")
	left := 100_000
	w := StreamWriter{Out: func(piece []byte) error {
		if left -= len(piece); left < 0 {
			return full
		}
		return nil
	}}
	long := []byte(strings.Repeat("x", 1<<20))
	w.Entry(StreamEntry{StreamID{1, 0}, [][]byte{long, long}})
	if err := w.Flush(); !errors.Is(err, full) {
		t.Errorf("Flush: %v", err)
	}
	if left < -writePiece {
		t.Errorf("%d bytes were written behind the error", -left)
	}
	if _, err := w.End(); !errors.Is(err, full) {
		t.Errorf("End: %v", err)
	}
}

func TestJoin(t *testing.T) {
	b := make([]byte, 3000)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	for _, at := range []int{0, 1, 7, 1000, 2999, 3000} {
		if got, want := join(Sum(0, b[:at]), Sum(0, b[at:]), len(b)-at), Sum(0, b); got != want {
			t.Errorf("at %d: %x, want %x", at, got, want)
		}
	}
}

func FuzzStream(f *testing.F) {
	for _, x := range streamPayloads {
		f.Add([]byte(x.head), x.version)
	}
	f.Fuzz(func(t *testing.T, head []byte, version uint16) {
		payload := withVersion(string(head), version)
		if Check(payload) != nil {
			return
		}
		m, err := readModel(payload)
		if err != nil {
			return
		}
		for _, actives := range []bool{true, false} {
			again, err := readModel(m.write(t, actives))
			if !actives {
				for _, g := range m.groups {
					for i := range g.consumers {
						g.consumers[i].Active = g.consumers[i].Seen
					}
				}
			}
			if err != nil || again.String() != m.String() {
				t.Fatalf("%v, read\n%s, and written\n%s", err, m.String(), again.String())
			}
		}
	})
}
