package tests

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// imageUser is the user as which the image runs, and for which the pods ask.
const imageUser = 65532

// TestDockerfile checks that the image holds only the binary, runs it as the user that the
// manifests ask for, and names the ports that pods use.
func TestDockerfile(t *testing.T) {
	text := string(readFile(t, "../docker/Dockerfile"))
	lines := strings.Split(text, "\n")
	for _, want := range []string{"FROM scratch", "COPY ${TARGETARCH}/dunlin /dunlin",
		"USER 65532:65532", `ENTRYPOINT ["/dunlin"]`} {
		if !slices.Contains(lines, want) {
			t.Errorf("the Dockerfile has no line %q", want)
		}
	}
	if n := strings.Count("\n"+text, "\nFROM ") + strings.Count("\n"+text, "\nCOPY "); n != 2 {
		t.Errorf("%d lines that bring something into the image, want 2", n)
	}
	for _, w := range load(t, "production").workloads {
		for _, p := range w.container().Ports {
			if !regexp.MustCompile(`EXPOSE .*\b` + strconv.Itoa(int(p.ContainerPort)) + `\b`).MatchString(text) {
				t.Errorf("the image does not expose port %s of %s", p.Name, w.name)
			}
		}
	}
}

// TestImageBinaries checks that `make image` builds, for both architectures, a program that needs
// nothing else in the image.
func TestImageBinaries(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the binary twice")
	}
	for arch, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		out := filepath.Join(t.TempDir(), "dunlin")
		build := exec.Command("go", "build", "-o", out, "./cmd/dunlin")
		build.Dir = top
		build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
		if text, err := build.CombinedOutput(); err != nil {
			t.Fatalf("cannot build for %s: %v\n%s", arch, err, text)
		}
		f, err := elf.Open(out)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if f.Machine != machine {
			t.Errorf("%s: built for %v", arch, f.Machine)
		}
		for _, p := range f.Progs {
			if p.Type == elf.PT_INTERP {
				t.Errorf("%s: not static: it wants a dynamic linker", arch)
			}
		}
	}
}
