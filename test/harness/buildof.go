package harness

import (
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

var buildOnly = flag.Bool("harness.build", false, "skip each test that starts from an earlier commit when that is built")

// BuildOf builds an earlier commit and returns the path of the binary. It skips the test where there is no history, and
// fails it if there is one without that commit. The binary of each name of a commit is kept, so that later test
// processes need not link it again: -harness.build makes the first one before its time.
func BuildOf(t testing.TB, commit string) (path string) {
	t.Helper()
	root := Root(t)
	git := func(args ...string) (string, error) {
		out, err := exec.Command("git", append([]string{"-C", root}, args...)...).Output()
		return strings.TrimSpace(string(out)), err
	}
	id, err := git("rev-parse", "--verify", "--quiet", commit+"^{commit}")
	if shallow, _ := git("rev-parse", "--is-shallow-repository"); err != nil && shallow == "false" {
		t.Fatalf("the history has no commit %s to upgrade from: choose another one", commit)
	}
	if err != nil {
		t.Skipf("there is no commit %s here to upgrade from: this needs a clone with its history (%v)", commit, err)
	}
	dir, err := outputDir(root)
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(dir, "dunlin-"+commit)
	// The file of the lock says what was built last.
	lock, err := lockOutput(path + ".lock")
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	want := id + " " + runtime.Version() + "\n"
	if built, err := io.ReadAll(lock); err != nil || string(built) != want || unix.Access(path, unix.X_OK) != nil {
		if err := lock.Truncate(0); err != nil {
			t.Fatal(err)
		}
		buildOf(t, root, id, path)
		if _, err := lock.WriteAt([]byte(want), 0); err != nil {
			t.Fatal(err)
		}
	}
	if *buildOnly {
		t.Skipf("commit %s is built", id)
	}
	return path
}

// buildOf builds the commit with that id.
func buildOf(t testing.TB, root, id, path string) {
	t.Helper()
	source := t.TempDir()
	archive := filepath.Join(source, "commit.tar")
	pack := exec.Command("git", "-C", root, "archive", "--format=tar", "-o", archive, id)
	if out, err := pack.CombinedOutput(); err != nil {
		t.Fatalf("cannot read commit %s: %v\n%s", id, err, out)
	}
	if out, err := exec.Command("tar", "-xf", archive, "-C", source).CombinedOutput(); err != nil {
		t.Fatalf("cannot unpack commit %s: %v\n%s", id, err, out)
	}
	// With the flags of the binary under test, and the profile of today: then only packages that have
	// changed since, and what imports them, are compiled again.
	profile := filepath.Join(root, "cmd", "dunlin", "default.pgo")
	compile := exec.Command("go", "build", "-trimpath", "-pgo="+profile, "-buildvcs=false", "-o", path, "./cmd/dunlin")
	compile.Dir, compile.Env = source, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("cannot build commit %s: %v\n%s", id, err, out)
	}
}
