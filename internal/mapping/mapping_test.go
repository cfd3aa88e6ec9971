package mapping

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const unit = 4 << 10

func mustReserve(t *testing.T, n, step, keep int) *Space {
	t.Helper()
	s, err := Reserve(n, unit, step, keep)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Free(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func mustGrow(t *testing.T, s *Space, base, from, to int) {
	t.Helper()
	if err := s.Grow(base, from, to); err != nil {
		t.Fatal(err)
	}
}

// TestRelease checks that released memory reads as zeros and its neighbours are unchanged, whatever
// the page size of the system.
func TestRelease(t *testing.T) {
	const n = 1 << 20
	s := mustReserve(t, n, 64<<10, 0)
	mustGrow(t, s, 0, 0, n)
	mem := s.Bytes()
	f := func(from, to int) {
		t.Helper()
		for i := range mem {
			mem[i] = 1
		}
		if err := Release(mem[from:to]); err != nil {
			t.Fatal(err)
		}
		zeros, ones := bytes.Count(mem[from:to], []byte{0}), bytes.Count(mem, []byte{1})
		if zeros != to-from || ones != n-zeros {
			t.Errorf("[%d, %d): %d bytes read as zeros, %d beside them kept", from, to, zeros, ones)
		}
		mem[from] = 1 // released memory can be written again
	}
	f(0, n)
	f(unit, 2*unit)
	f(unit, n-unit)
	f(5*unit, 6*unit)
	Populate(mem[:16*unit])
	Collapse(mem)
	Split(mem)
	f(0, 16*unit)
}

// TestSteps checks which steps are writable while ranges grow and shrink.
func TestSteps(t *testing.T) {
	const step, keep = 16 * unit, 32 * unit
	before := runs.Load()
	t.Cleanup(func() {
		if left := runs.Load() - before; left != 0 {
			t.Errorf("%d runs are left when the space is free", left)
		}
	})
	s := mustReserve(t, 8*step, step, keep)
	f := func(want string, wantRuns int64) {
		t.Helper()
		var got strings.Builder
		for i := range s.steps {
			switch {
			case s.steps[i] == writable:
				got.WriteByte('i')
			case s.isWritable(i):
				got.WriteByte('w')
			default:
				got.WriteByte('-')
			}
		}
		if got.String() != want || runs.Load()-before != wantRuns {
			t.Errorf("the steps are %s in %d runs, want %s in %d", got.String(), runs.Load()-before, want, wantRuns)
		}
		if idle := strings.Count(want, "i") * step; s.idle != idle {
			t.Errorf("%d bytes are idle, want %d", s.idle, idle)
		}
	}
	shrink := func(base, from, to int) {
		t.Helper()
		if err := s.Shrink(base, from, to); err != nil {
			t.Fatal(err)
		}
	}
	f("--------", 0)
	mustGrow(t, s, 0, 0, unit)
	mustGrow(t, s, 0, unit, step)
	f("w-------", 1)
	mustGrow(t, s, 0, step, step+unit)
	mustGrow(t, s, step+unit, 0, unit)
	f("ww------", 1)
	shrink(0, step+unit, step)
	f("ww------", 1)
	shrink(step+unit, unit, 0)
	f("wi------", 1)
	mustGrow(t, s, 3*step, 0, 4*step)
	f("wi-wwww-", 2)
	s.Bytes()[4*step] = 1
	shrink(3*step, 4*step, unit)
	f("wi-w--i-", 3)
	mustGrow(t, s, step, 0, 6*step)
	f("wwwwwww-", 1)
	if s.Bytes()[4*step] != 0 {
		t.Error("released memory does not read as zeros")
	}
	for i := range 7 * step / unit {
		s.Bytes()[i*unit] = 1
	}
	shrink(step, 6*step, 0)
	f("w--w-ii-", 3)
}

// TestOutsideIsRead checks that what is not in use can be read.
func TestOutsideIsRead(t *testing.T) {
	s := mustReserve(t, 1<<30, 1<<20, 0)
	if s.Bytes()[0]|s.Bytes()[1<<30-1] != 0 {
		t.Error("fresh memory does not read as zeros")
	}
}

// TestGrowFails checks that a refusal of the system changes nothing and is not the end.
func TestGrowFails(t *testing.T) {
	s := mustReserve(t, 4<<20, 1<<20, 0)
	mustGrow(t, s, 1<<20, 0, 1<<20)
	before := runs.Load()
	runs.Add(maxRuns)
	if err := s.Grow(3<<20, 0, 1<<20); err == nil {
		t.Error("there are more mappings than there may be")
	}
	mustGrow(t, s, 2<<20, 0, 1<<20) // which makes an old one longer
	runs.Add(-maxRuns)
	if runs.Load() != before || s.idle != 0 {
		t.Errorf("%d runs, %d bytes idle", runs.Load()-before, s.idle)
	}
	mustGrow(t, s, 3<<20, 0, 1<<20)
	s.Bytes()[4<<20-1] = 1
}

// TestNotCounted checks that a space counts as data of the process only as far as it is in use:
// where the system commits memory when it is mapped, it counts the same mappings.
func TestNotCounted(t *testing.T) {
	data := func() (kb int) {
		text, err := os.ReadFile("/proc/self/status")
		if err != nil {
			t.Skip(err)
		}
		for line := range strings.Lines(string(text)) {
			if fields := strings.Fields(line); fields[0] == "VmData:" {
				for _, digit := range fields[1] {
					kb = 10*kb + int(digit-'0')
				}
			}
		}
		return kb
	}
	const gib = 1 << 30
	before := data()
	s := mustReserve(t, 64*gib, 1<<20, 0)
	if grown := data() - before; grown > gib>>10 {
		t.Errorf("64 GiB of addresses count as %d KiB", grown)
	}
	if err := s.Grow(0, 0, 2*gib); err != nil {
		t.Skip("the system commits no 2 GiB: ", err)
	}
	if grown := data() - before; grown < gib>>10 { // less a stack that a thread may have given back
		t.Errorf("2 GiB in use count as %d KiB", grown)
	}
	if err := s.Shrink(0, 2*gib, 0); err != nil {
		t.Fatal(err)
	}
	if grown := data() - before; grown > gib>>10 {
		t.Errorf("addresses that are not in use any more count as %d KiB", grown)
	}
}

// TestWritesOutsideFault makes the rights of a page visible: the system refuses to read into it.
func TestWritesOutsideFault(t *testing.T) {
	s := mustReserve(t, 2<<20, 1<<20, 0)
	mustGrow(t, s, 0, 0, 1)
	file, err := os.Open("/dev/zero")
	if err != nil {
		t.Skip(err)
	}
	defer file.Close()
	if _, err := unix.Read(int(file.Fd()), s.Bytes()[:1]); err != nil {
		t.Errorf("what is in use: %v", err)
	}
	if _, err := unix.Read(int(file.Fd()), s.Bytes()[1<<20:]); err != unix.EFAULT {
		t.Errorf("what is not in use: %v", err)
	}
}
