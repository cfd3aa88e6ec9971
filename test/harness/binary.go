package harness

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

	"golang.org/x/sys/unix"
)

// ports remembers what freeAddr gave away in this run.
var ports struct {
	sync.Mutex
	taken map[int]bool
}

// FreeAddr returns a loopback address that is free for TCP and UDP, and that the
// system will not hand to an outgoing connection while its member is down: it
// is below the ephemeral ports.
func FreeAddr(t testing.TB) string {
	t.Helper()
	ports.Lock()
	defer ports.Unlock()
	if ports.taken == nil {
		ports.taken = map[int]bool{}
	}
	for range 1000 {
		port := 12000 + rand.IntN(20000)
		addr := fmt.Sprintf("127.0.0.1:%d", port)
		if ports.taken[port] || !IsFree(addr) {
			continue
		}
		ports.taken[port] = true
		return addr
	}
	t.Fatal("cannot find a free port")
	return ""
}

// IsFree reports whether nobody listens on addr, by TCP and UDP.
func IsFree(addr string) bool {
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

// build compiles the binary, with the race detector when the tests have it. Test processes
// that run at the same time share it.
var build = sync.OnceValues(func() (path string, err error) {
	root, err := moduleRoot()
	if err == nil {
		err = noteSources(root)
	}
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, "bin", "test")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	path = filepath.Join(dir, "dunlin")
	args := []string{"build"}
	if RaceEnabled {
		path += "-race"
		args = append(args, "-race")
	}
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", err
	}
	defer lock.Close() // which unlocks it
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return "", fmt.Errorf("cannot lock %s: %w", lock.Name(), err)
	}
	cmd := exec.Command("go", append(args, "-o", path, "./cmd/dunlin")...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot build dunlin: %w\n%s", err, out)
	}
	return path, nil
})

// Binary returns the path of the binary under test.
func Binary(t testing.TB) string {
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

// Root returns the directory of the module, where go.mod is.
func Root(t testing.TB) string {
	t.Helper()
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("cannot find go.mod above the working directory")
		}
		dir = up
	}
	return "", err
}

// SkipUnderRace is for tests that load the machine: with the race detector in
// every process its members are too slow to keep their deadlines.
func SkipUnderRace(t *testing.T) {
	t.Helper()
	if RaceEnabled {
		t.Skip("too much work for the race detector")
	}
}

// noteSources looks at every source file of the module. The go command remembers
// which files a test has looked at, and runs it again when one has changed; it
// does not see what the binary under test is made of.
func noteSources(root string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
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

// CleanEnviron is the environment without settings that a developer may have.
func CleanEnviron() []string {
	return slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "DUNLIN_") })
}
