//go:build linux && !portable

package mapping

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"testing"
)

// fileBacked is how much memory of the process is backed by files, in bytes.
func fileBacked(t *testing.T) (n int) {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip(err)
	}
	for line := range bytes.Lines(status) {
		_, _ = fmt.Sscanf(string(line), "RssFile: %d kB", &n)
	}
	return n << 10
}

// TestForgetProgram: the program runs on, with less of its file in memory.
func TestForgetProgram(t *testing.T) {
	before := fileBacked(t)
	if err := ForgetProgram(); err != nil {
		t.Fatal(err)
	}
	after := fileBacked(t)
	runtime.GC()
	if after >= before {
		t.Errorf("%d bytes of files are in memory, %d before", after, before)
	}
	got, err := ProgramMemory()
	if now := fileBacked(t); err != nil || got < int64(after) || got > int64(now) {
		t.Errorf("the program takes %d bytes of memory, %v; want %d to %d", got, err, after, now)
	}
}

// TestParseMapping: only read-only mappings of the program's file are given back.
func TestParseMapping(t *testing.T) {
	for line, want := range map[string][2]bool{
		"00400000-00c11000 r-xp 00000000 08:01 77 /opt/a b/dunlin\n":            {true, true},
		"00c11000-01c11000 r--p 00811000 08:01 77 /opt/a b/dunlin\n":            {true, true},
		"01c11000-01d11000 rw-p 01811000 08:01 77 /opt/a b/dunlin\n":            {false, true},
		"7f0000000000-7f0000001000 r--p 00000000 08:01 78 /opt/a b/dunlin.so\n": {false, true},
		"c000000000-c000400000 rw-p 00000000 00:00 0 \n":                        {false, true},
		"Anonymous:             0 kB\n":                                         {false, false},
		"VmFlags: rd ex mr mw me sd\n":                                          {false, false},
	} {
		if _, _, ofProgram, header := parseMapping([]byte(line), "/opt/a b/dunlin"); ofProgram != want[0] || header != want[1] {
			t.Errorf("%q: %v %v, want %v", line, ofProgram, header, want)
		}
	}
}
