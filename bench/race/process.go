package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// role says what a process does in its peer; processor time is summed by role.
type role int

const (
	roleNode role = iota
	roleProxy
	roleLoad // this process
	roles    // how many
)

// The kernel ends our children when the thread that started them ends (ownGroup). The main
// goroutine starts all children, so it stays on the main thread, which lives as long as the
// process.
func init() { runtime.LockOSThread() }

// ownGroup gives a child a process group of its own: ctrl-C reaches only this process, which then
// ends its children itself. If this process is killed, the kernel kills them.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// process is a running server.
type process struct {
	role   role
	name   string
	log    string // name of the file with its output
	cmd    *exec.Cmd
	exited chan struct{} // closed when it has ended and been waited for
}

// stable holds every server of the race, and a directory for their files. Only the main goroutine
// uses it.
type stable struct {
	dir        string
	maxClients string // how many clients a server accepts
	all        []*process
}

// usualClients is more clients than most workloads have; the servers' defaults are about 10,000.
const usualClients = 12_000

func newStable(clients int) (*stable, error) {
	dir, err := os.MkdirTemp("", "dunlin-race-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a directory for the servers: %w", err)
	}
	return &stable{dir: dir, maxClients: strconv.Itoa(max(usualClients, clients+100))}, nil
}

// start starts a server. Its working directory is the stable's, so that no file stays behind.
func (s *stable) start(r role, name, command string, arguments ...string) (*process, error) {
	p := &process{role: r, name: name, log: filepath.Join(s.dir, name+".log"), exited: make(chan struct{})}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", name, err)
	}
	defer log.Close() // the child has its own descriptor
	p.cmd = exec.Command(command, arguments...)
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = s.dir, log, log
	p.cmd.Env = plainEnviron()
	p.cmd.SysProcAttr = ownGroup()
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", name, err)
	}
	s.all = append(s.all, p)
	go func() { // ends with the process, which close kills and waits for
		_ = p.cmd.Wait() // the log says why it ended
		close(p.exited)
	}()
	return p, nil
}

// close kills all servers and removes their files. An orderly stop would only cost time: a leaving
// node hands its keys over first.
func (s *stable) close() {
	for _, p := range s.all {
		_ = p.cmd.Process.Kill() // an error means that it has ended already
	}
	for _, p := range s.all {
		<-p.exited
	}
	if err := os.RemoveAll(s.dir); err != nil {
		fmt.Fprintln(os.Stderr, "cannot remove the servers' files:", err)
	}
}

// end kills one server of a peer that does not take part after all. close may find it again.
func (p *process) end() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

func (p *process) running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// lastWords returns the end of the process's output.
func (p *process) lastWords() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return lastLine(string(text))
}

// lastLine returns the last line of text that is not empty, in which programs usually say why they
// gave up.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}

// usage is the processor time of all threads of a process since its start, and its present memory.
type usage struct {
	cpu   time.Duration
	bytes int64
}

func (p *process) usage() (usage, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return usage{}, fmt.Errorf("cannot read usage of %s: %w", p.name, err)
	}
	u, err := parseUsage(string(text))
	if err != nil {
		return usage{}, fmt.Errorf("cannot read usage of %s: %w", p.name, err)
	}
	return u, nil
}

// parseUsage reads /proc/PID/stat (proc_pid_stat(5)). Its second field is the name, which may
// contain spaces and parentheses, so counting begins after the last parenthesis.
func parseUsage(stat string) (usage, error) {
	const (
		afterName          = 3 // the number of the field that follows the name
		userTime, kernTime = 14 - afterName, 15 - afterName
		resident           = 24 - afterName
		tick               = time.Second / 100 // USER_HZ, on every system that Go runs on
	)
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) <= resident {
		return usage{}, fmt.Errorf("%q is not the stat of a process", stat)
	}
	user, err1 := strconv.ParseInt(fields[userTime], 10, 64)
	kern, err2 := strconv.ParseInt(fields[kernTime], 10, 64)
	pages, err3 := strconv.ParseInt(fields[resident], 10, 64)
	if err := errors.Join(err1, err2, err3); err != nil {
		return usage{}, err
	}
	return usage{cpu: time.Duration(user+kern) * tick, bytes: pages * int64(os.Getpagesize())}, nil
}

// plainEnviron returns the environment without settings that a developer may have made.
func plainEnviron() (kept []string) {
	for _, setting := range os.Environ() {
		if !strings.HasPrefix(setting, "DUNLIN_") {
			kept = append(kept, setting)
		}
	}
	return kept
}
