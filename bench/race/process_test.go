package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestMain lets the test binary act as a race that starts a server, prints its id, and waits to be
// killed.
const actAsRace = "RACE_TEST_ACT_AS_RACE"

func TestMain(m *testing.M) {
	if os.Getenv(actAsRace) == "" {
		os.Exit(m.Run())
	}
	s, err := newStable(0)
	if err != nil {
		panic(err)
	}
	p, err := s.start(roleNode, "sleeper", "sleep", "600")
	if err != nil {
		panic(err)
	}
	fmt.Println(p.cmd.Process.Pid, s.dir)
	time.Sleep(time.Minute)
}

func TestParseUsage(t *testing.T) {
	const stat = "4711 (redis) (x) R) S 1 4711 4711 0 -1 4194560 900 0 0 0 250 50 7 8 20 0 5 0 100 12345678 1000 18446744073709551615 1 1\n"
	got, err := parseUsage(stat)
	want := usage{cpu: 3 * time.Second, bytes: 1000 * int64(os.Getpagesize())}
	if err != nil || got != want {
		t.Errorf("usage is %+v, %v: want %+v", got, err, want)
	}
	for _, bad := range []string{"", "1 (x) S 1 2", strings.Replace(stat, " 250 ", " much ", 1)} {
		if u, err := parseUsage(bad); err == nil {
			t.Errorf("usage %+v was read from %q", u, bad)
		}
	}
}

func startSleeper(t *testing.T, s *stable) *process {
	t.Helper()
	p, err := s.start(roleNode, "sleeper", "sleep", "600")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// testStable keeps the test on its thread, as main is kept on its own: a load's
// workers take threads with them when they end, and with those whom they started.
func testStable(t *testing.T) *stable {
	t.Helper()
	runtime.LockOSThread()
	s, err := newStable(0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	return s
}

func TestUsageOfProcess(t *testing.T) {
	s := testStable(t)
	p, err := s.start(roleNode, "burner", "sh", "-c", "while :; do :; done")
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		u, err := p.usage()
		if err != nil {
			t.Fatal(err)
		}
		if u.cpu >= 20*time.Millisecond && u.bytes > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("a busy shell has used %+v in 10 s", u)
		}
	}
	p.end()
	if u, err := p.usage(); err == nil {
		t.Errorf("a process that is gone uses %+v", u)
	}
}

// TestCloseAfterPanic checks that servers end even if the race panics.
func TestCloseAfterPanic(t *testing.T) {
	var p *process
	var dir string
	func() {
		defer func() { _ = recover() }()
		s, err := newStable(0)
		if err != nil {
			t.Fatal(err)
		}
		defer s.close()
		p, dir = startSleeper(t, s), s.dir
		panic("on purpose")
	}()
	if p.running() || alive(p.cmd.Process.Pid) {
		t.Error("the server runs after close")
	}
	if _, err := os.Stat(dir); err == nil {
		t.Errorf("%s is there after close", dir)
	}
}

// TestKilled checks that the kernel ends the servers if the race cannot.
func TestKilled(t *testing.T) {
	race := exec.Command(os.Args[0])
	race.Env = append(os.Environ(), actAsRace+"=1")
	out, err := race.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := race.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	_ = race.Process.Kill()
	_ = race.Wait()
	if err != nil {
		t.Fatal(err)
	}
	text, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
	defer os.RemoveAll(dir)
	pid, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); alive(pid); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the server, process %d, outlives its race", pid)
		}
	}
}

// alive reports whether a process runs. One that only waits to be reaped does not.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

func TestStartRefuses(t *testing.T) {
	if _, err := testStable(t).start(roleNode, "nobody", "/no/such/program"); err == nil {
		t.Error("a program that does not exist was started")
	}
}

func TestPlainEnviron(t *testing.T) {
	t.Setenv("DUNLIN_MEMORY", "1gb")
	t.Setenv("RACE_TEST_KEPT", "yes")
	all := strings.Join(plainEnviron(), "\n")
	if strings.Contains(all, "DUNLIN_MEMORY") || !strings.Contains(all, "RACE_TEST_KEPT=yes") {
		t.Errorf("servers get the environment %q", all)
	}
}

func TestLastLine(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if got := lastLine(text); got != want {
			t.Errorf("the last line of %q is %q: want %q", text, got, want)
		}
	}
	f("", "")
	f("one", "one")
	f("one\ntwo \n\n", "two")
}
