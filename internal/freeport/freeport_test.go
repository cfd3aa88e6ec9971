package freeport

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// asked makes a test process choose ports, print them, and wait until its input ends.
const asked = "DUNLIN_TEST_PORTS"

func TestMain(m *testing.M) {
	if os.Getenv(asked) == "" {
		os.Exit(m.Run())
	}
	for range 50 {
		port, err := Choose()
		if err != nil {
			panic(err)
		}
		fmt.Println(port)
	}
}

// TestChooseInOneProcess: no port is chosen twice.
func TestChooseInOneProcess(t *testing.T) {
	seen := map[int]bool{}
	for range 200 {
		port, err := Choose()
		if err != nil || seen[port] || probe(Loopback(port)) != nil {
			t.Fatalf("port %d, %v, chosen before: %v", port, err, seen[port])
		}
		seen[port] = true
	}
}

// TestChooseRow: ports in a row are all free, and nobody else's.
func TestChooseRow(t *testing.T) {
	first, err := ChooseRow(4)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		if _, err := lock(filepath.Join(os.TempDir(), "dunlin-ports", fmt.Sprint(first+i))); err == nil {
			t.Errorf("port %d of the row is not locked", i)
		}
	}
	taken, err := net.Listen("tcp", Loopback(first+2))
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := t.TempDir()
	if chooseRow(dir, first, 4) == nil {
		t.Error("a row with a port that is taken is chosen")
	}
	if unlock, err := lock(filepath.Join(dir, fmt.Sprint(first))); err != nil {
		t.Error("the first port of a row that is not chosen stays locked")
	} else {
		unlock()
	}
}

// TestLockedPort: a port that another process has chosen is not chosen, and its end makes it free.
func TestLockedPort(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	path := filepath.Join(t.TempDir(), "port")
	unlock, err := lock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock(path); err == nil {
		t.Error("a port is locked twice")
	}
	// A process that is started meanwhile does not keep the lock.
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asked+"=1")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	ports := strings.Fields(string(out))
	if len(ports) != 50 || len(slices.Compact(slices.Sorted(slices.Values(ports)))) != 50 {
		t.Errorf("the other process chose %q", ports)
	}
	unlock()
	unlock, err = lock(path)
	if err != nil {
		t.Error("a port stays locked")
	} else {
		unlock()
	}
	for _, port := range ports { // its process has ended
		unlock, err := lock(filepath.Join(os.Getenv("TMPDIR"), "dunlin-ports", port))
		if err != nil {
			t.Fatalf("port %s stays locked: %v", port, err)
		}
		unlock()
	}
}
