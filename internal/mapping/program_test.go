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
	if after >= before && runtime.GOOS == "linux" {
		t.Errorf("%d bytes of files are in memory, %d before", after, before)
	}
}
