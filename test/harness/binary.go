package harness

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// build compiles the binary, with the race detector if the tests have it. Test processes that run
// at the same time share the binary, and a lock on a file lets one of them build it. The flags are
// those of `make build`, or those of the tests under the race detector, with the tag checked: packages that
// either has compiled are not compiled again.
var build = sync.OnceValues(func() (path string, err error) {
	root, err := moduleRoot()
	if err == nil {
		err = noteSources(root)
	}
	if err != nil {
		return "", err
	}
	dir, err := outputDir(root)
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, "dunlin")
	args, cgo := []string{"build", "-trimpath", "-pgo=auto"}, "0"
	if RaceEnabled {
		path += "-race"
		args, cgo = []string{"build", "-race", "-tags", "checked", "-pgo=off"}, "1"
	}
	lock, err := lockOutput(path + ".lock")
	if err != nil {
		return "", err
	}
	defer lock.Close()
	cmd := exec.Command("go", append(args, "-o", path, "./cmd/dunlin")...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED="+cgo)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot build dunlin: %w\n%s", err, out)
	}
	return path, nil
})

// outputDir returns the directory of what test processes build.
func outputDir(root string) (string, error) {
	dir := filepath.Join(root, "bin", "test")
	for _, d := range []string{filepath.Dir(dir), dir} {
		if err := unix.Mkdir(d, 0o755); err != nil && !errors.Is(err, unix.EEXIST) {
			return "", fmt.Errorf("cannot make %s: %w", d, err)
		}
	}
	return dir, nil
}

// lockOutput opens a file and locks it until it is closed.
func lockOutput(path string) (*os.File, error) {
	lock, err := Output(path, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot lock %s: %w", path, err), lock.Close())
	}
	return lock, nil
}

// Binary returns the path of the binary under test.
func Binary(t testing.TB) string {
	t.Helper()
	if path := os.Getenv(networkEnv); path != "" {
		return path // built by the process that started this one
	}
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Root returns the directory that holds go.mod.
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

// SkipUnderRace skips a test that loads the machine: with the race detector in every process, the
// members are too slow for their deadlines.
func SkipUnderRace(t *testing.T) {
	t.Helper()
	if RaceEnabled {
		t.Skip("too much work for the race detector")
	}
}

// noteSources looks at every source file of the module. The go command caches the result of a test
// together with the files and directories that the test has looked at, but does not know the sources
// of the binary under test. With this, a changed source runs the test again. The root itself is read past
// package os, which would note it: git and other tests change what it lists about .git and bin.
func noteSources(root string) error {
	fd, err := unix.Open(root, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("cannot open %s: %w", root, err)
	}
	list := os.NewFile(uintptr(fd), root)
	defer list.Close()
	names, err := list.Readdirnames(-1)
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		if name == ".git" || name == "bin" {
			continue
		}
		if err := noteTree(filepath.Join(root, name)); err != nil {
			return err
		}
	}
	return nil
}

func noteTree(root string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "bin":
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

// Output opens a file that a test writes, with more flags of open(2). Package os would note it as an input,
// and the go command does not cache a test whose inputs are new.
func Output(path string, flags int) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC|flags, 0o644)
	if err != nil {
		return nil, fmt.Errorf("cannot open %s: %w", path, err)
	}
	return os.NewFile(uintptr(fd), path), nil
}

// CleanEnviron returns the environment without DUNLIN_ variables, which a developer may have set.
func CleanEnviron() []string {
	return slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "DUNLIN_") })
}
