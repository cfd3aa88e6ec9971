package harness

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// shownLog is how many bytes of a log's end a failed test shows.
const shownLog = 8 << 10

// Member is a member of the cluster. Its process can end and start again: the id, the addresses,
// the flags and the log stay.
type Member struct {
	T                   testing.TB
	Role, ID            string
	Addr, Gossip, Admin string
	Logged              string // file name of the log
	Path                string // of the binary; "": the one under test
	Flags, Env          []string
	required            []string      // flags that its host needs
	Stopped             bool          // by SIGSTOP
	Relay               *relay        // between this node and the other members, or nil
	host                *host         // nil: this one
	Clock               time.Duration // offset of the wall clock, on this host only; see startAt

	Cmd    *exec.Cmd
	exited chan struct{} // closed when the process is gone and waited for
}

// NewMember returns a member on this host that is not running yet.
func NewMember(t testing.TB, role, id string) *Member {
	return &Member{T: t, Role: role, ID: id, Addr: FreeAddr(t), Gossip: FreeAddr(t), Admin: FreeAddr(t),
		Logged: filepath.Join(t.TempDir(), id+".log")}
}

// Start starts the process, or starts it again, and waits until it is ready.
func (m *Member) Start() {
	m.T.Helper()
	m.Launch()
	m.WaitReady()
}

// Launch starts the process without waiting for it.
func (m *Member) Launch() {
	m.T.Helper()
	args := append([]string{m.Role, "--id", m.ID, "--listen", m.Addr, "--gossip", m.Gossip, "--admin", m.Admin}, m.required...)
	args = append(args, m.Flags...)
	m.Run(args...)
}

// Run starts the binary with any arguments as this member's process.
func (m *Member) Run(args ...string) {
	m.T.Helper()
	if m.Running() {
		m.T.Fatalf("BUG: %s runs already", m.ID)
	}
	log, err := os.OpenFile(m.Logged, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		m.T.Fatal(err)
	}
	defer log.Close() // the process has its own descriptor
	path := m.Path
	if path == "" {
		path = Binary(m.T)
	}
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(CleanEnviron(), m.Env...)
	EndWithUs(cmd)
	start := m.host.start
	if m.Clock != 0 {
		start = func(cmd *exec.Cmd) error { return startAt(cmd, m.Clock) }
	}
	if err := start(cmd); errors.Is(err, errNoClock) {
		m.T.Skipf("cannot set the clock of a process: %v", err)
	} else if err != nil {
		m.T.Fatalf("cannot start %s: %v", m.ID, err)
	}
	first := m.Cmd == nil
	m.Cmd, m.exited, m.Stopped = cmd, make(chan struct{}), false
	go func(exited chan struct{}) {
		_ = cmd.Wait() // the outcome is in cmd.ProcessState
		close(exited)
	}(m.exited)
	if first {
		m.T.Cleanup(m.cleanup)
	}
}

// EndWithUs lets the kernel kill the process of cmd when the test process dies, for whatever
// reason.
func EndWithUs(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

func (m *Member) cleanup() {
	m.Kill()
	log, _ := os.ReadFile(m.Logged)
	for _, bad := range []string{"WARNING: DATA RACE", "panic:", "fatal error:", "panic on event loop"} {
		if strings.Contains(string(log), bad) {
			m.T.Errorf("%s reports %q", m.ID, bad)
		}
	}
	if m.T.Failed() {
		m.T.Logf("end of the log of %s:\n%s", m.ID, log[max(0, len(log)-shownLog):])
	}
}

// Says returns the lines of the log that were written since then and contain one of the texts.
func (m *Member) Says(since time.Time, texts ...string) (lines []string) {
	m.T.Helper()
	log, err := os.ReadFile(m.Logged)
	if err != nil {
		m.T.Fatal(err)
	}
	for line := range strings.Lines(string(log)) {
		says := func(text string) bool { return strings.Contains(line, text) }
		stamp, _, _ := strings.Cut(strings.TrimPrefix(line, "time="), " ")
		if at, err := time.Parse(time.RFC3339, stamp); err == nil && !at.Before(since) && slices.ContainsFunc(texts, says) {
			lines = append(lines, line)
		}
	}
	return lines
}

// Running reports whether the process exists. A stopped process does.
func (m *Member) Running() bool {
	if m.Cmd == nil {
		return false
	}
	select {
	case <-m.exited:
		return false
	default:
		return true
	}
}

func (m *Member) signal(s syscall.Signal) {
	m.T.Helper()
	if err := m.Cmd.Process.Signal(s); err != nil {
		m.T.Fatalf("cannot send %v to %s: %v", s, m.ID, err)
	}
}

// Kill ends the process by SIGKILL, if it runs, and waits for its end.
func (m *Member) Kill() {
	if m.Running() {
		_ = m.Cmd.Process.Kill() // it may have ended just now
		<-m.exited
	}
}

// Stop freezes the process by SIGSTOP: its sockets stay open and nothing answers.
func (m *Member) Stop() {
	m.T.Helper()
	m.signal(syscall.SIGSTOP)
	m.Stopped = true
	for deadline := time.Now().Add(ReadyTimeout); !m.frozen(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			m.T.Fatalf("%s does not stop", m.ID)
		}
	}
}

// frozen reports whether all threads of the process have stopped. On a busy machine, the last one
// stops some time after the signal.
func (m *Member) frozen() bool {
	states, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", m.Cmd.Process.Pid))
	if err != nil || len(states) == 0 {
		return false
	}
	for _, path := range states {
		text, err := os.ReadFile(path)
		if after := bytes.LastIndexByte(text, ')'); err == nil && (after < 0 || !bytes.HasPrefix(text[after:], []byte(") T"))) {
			return false
		}
	}
	return true
}

// Cont lets a frozen process continue.
func (m *Member) Cont() {
	m.T.Helper()
	m.signal(syscall.SIGCONT)
	m.Stopped = false
}

// Term ends the process by SIGTERM, waits for its end, and returns how long that took. The test
// fails if it takes longer than within, or if the exit code is not 0.
func (m *Member) Term(within time.Duration) time.Duration {
	m.T.Helper()
	begin := time.Now()
	m.signal(syscall.SIGTERM)
	select {
	case <-m.exited:
	case <-time.After(within):
		m.T.Fatalf("%s still runs %v after SIGTERM:\n%s", m.ID, within, m.goroutines())
	}
	if code := m.Cmd.ProcessState.ExitCode(); code != 0 {
		m.T.Errorf("%s ended with exit code %d after SIGTERM", m.ID, code)
	}
	return time.Since(begin)
}

// goroutines ends the process by SIGQUIT and returns what its goroutines did.
func (m *Member) goroutines() []byte {
	before, _ := os.ReadFile(m.Logged)
	m.signal(syscall.SIGQUIT)
	select {
	case <-m.exited:
	case <-time.After(ReadyTimeout):
	}
	log, _ := os.ReadFile(m.Logged)
	return bytes.TrimPrefix(log, before)
}

// WaitReady waits until /readyz answers 200.
func (m *Member) WaitReady() {
	m.T.Helper()
	last := "nothing asked yet"
	Eventually(m.T, ReadyTimeout, m.ID+" is ready", func() bool {
		if !m.Running() {
			m.T.Fatalf("%s has ended instead of getting ready: %v", m.ID, m.Cmd.ProcessState)
		}
		body, err := Get(m.Admin, "/readyz")
		last = fmt.Sprintf("%q, %v", body, err)
		return err == nil
	}, func() string { return last })
}

// Resident returns the resident memory of a member's process, in bytes.
func Resident(t *testing.T, m *Member) int64 {
	t.Helper()
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", m.Cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(statm))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}
