package test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// ports remembers what freeAddr gave away in this run.
var ports struct {
	sync.Mutex
	taken map[int]bool
}

// freeAddr returns a loopback address that is free for TCP and UDP, and that the
// system will not hand to an outgoing connection while its member is down: it
// is below the ephemeral ports.
func freeAddr(t testing.TB) string {
	t.Helper()
	ports.Lock()
	defer ports.Unlock()
	if ports.taken == nil {
		ports.taken = map[int]bool{}
	}
	for range 1000 {
		port := 12000 + rand.IntN(20000)
		addr := fmt.Sprintf("127.0.0.1:%d", port)
		if ports.taken[port] || !isFree(addr) {
			continue
		}
		ports.taken[port] = true
		return addr
	}
	t.Fatal("cannot find a free port")
	return ""
}

func isFree(addr string) bool {
	tcp, err := net.Listen("tcp", addr)
	if err != nil {
		return false
	}
	defer tcp.Close()
	udp, err := net.ListenPacket("udp", addr)
	if err != nil {
		return false
	}
	udp.Close()
	return true
}

// build compiles the binary for this run, with the race detector when the tests
// have it. TestMain removes it.
var build = sync.OnceValues(func() (path string, err error) {
	if err := noteSources(); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "dunlin-test-")
	if err != nil {
		return "", err
	}
	buildDir = dir
	path = filepath.Join(dir, "dunlin")
	args := []string{"build", "-o", path}
	if raceEnabled {
		args = append(args, "-race")
	}
	out, err := exec.Command("go", append(args, "../cmd/dunlin")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("cannot build dunlin: %w\n%s", err, out)
	}
	return path, nil
})

var buildDir string

func binary(t testing.TB) string {
	t.Helper()
	if path := os.Getenv(networkEnv); path != "" {
		return path // built by the process that has started this one
	}
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestMain(m *testing.M) {
	code := m.Run()
	if buildDir != "" {
		os.RemoveAll(buildDir)
	}
	os.Exit(code)
}

// skipUnderRace is for tests that load the machine: with the race detector in
// every process its members are too slow to keep their deadlines.
func skipUnderRace(t *testing.T) {
	t.Helper()
	if raceEnabled {
		t.Skip("too much work for the race detector")
	}
}

// noteSources looks at every source file of the module. The go command remembers
// which files a test has looked at, and runs it again when one has changed; it
// does not see what the binary under test is made of.
func noteSources() error {
	return filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "bin"):
			return fs.SkipDir
		case d.Type().IsRegular():
			_, err = os.Stat(path)
			if errors.Is(err, fs.ErrNotExist) {
				err = nil // an editor's temporary file
			}
		}
		return err
	})
}

// cleanEnviron is the environment without settings that a developer may have.
func cleanEnviron() []string {
	return slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "DUNLIN_") })
}
