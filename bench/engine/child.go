package main

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// caseEnv is the environment variable that names the case that a process runs.
const caseEnv = "DUNLIN_BENCH_CASE"

// cases are the parts of tables that run in processes of their own. They exchange values with the
// parent by in and out.
var cases = map[string]func(in *gob.Decoder, out *gob.Encoder) error{}

// actAsCase runs the case that the environment names, if any.
func actAsCase() bool {
	name := os.Getenv(caseEnv)
	if name == "" {
		return false
	}
	if err := cases[name](gob.NewDecoder(os.Stdin), gob.NewEncoder(os.Stdout)); err != nil && !errors.Is(err, io.EOF) {
		fmt.Fprintf(os.Stderr, "case %s: %v\n", name, err)
		os.Exit(1)
	}
	return true
}

// The kernel ends our children when the thread that started them ends (ownGroup). The main
// goroutine starts all children, so it stays on the main thread, which lives as long as the
// process.
func init() {
	if os.Getenv(caseEnv) == "" {
		runtime.LockOSThread()
	}
}

// ownGroup gives a child a process group of its own: ctrl-C reaches only this process, which then
// ends its children itself. If this process is killed, the kernel kills them.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// child is a running case. The goroutine that started it uses it.
type child struct {
	name string
	cmd  *exec.Cmd
	in   io.WriteCloser
	enc  *gob.Encoder
	dec  *gob.Decoder
}

// startCase starts this program again as the case of that name.
func startCase(name string, environ ...string) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("cannot start case %s: %w", name, err)
	}
	c := &child{name: name, cmd: exec.Command(self)}
	c.cmd.Env = append(append(os.Environ(), caseEnv+"="+name), environ...)
	c.cmd.SysProcAttr = ownGroup()
	c.cmd.Stderr = os.Stderr
	in, err1 := c.cmd.StdinPipe()
	out, err2 := c.cmd.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("cannot start case %s: %w", name, err)
	}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start case %s: %w", name, err)
	}
	c.in, c.enc, c.dec = in, gob.NewEncoder(in), gob.NewDecoder(out)
	return c, nil
}

// ask sends a question and waits for the answer. answer is a pointer.
func (c *child) ask(question, answer any) error {
	if err := c.enc.Encode(question); err != nil {
		return fmt.Errorf("cannot ask case %s: %w", c.name, err)
	}
	if err := c.dec.Decode(answer); err != nil {
		return fmt.Errorf("case %s gives no answer: %w", c.name, err)
	}
	return nil
}

// end kills the case, which has nothing to save.
func (c *child) end() {
	_ = c.cmd.Process.Kill() // an error means that it has ended already
	_ = c.cmd.Wait()         // the error is the kill
}

// runCase starts a case for one question.
func runCase(name string, question, answer any, environ ...string) error {
	c, err := startCase(name, environ...)
	if err != nil {
		return err
	}
	defer c.end()
	return c.ask(question, answer)
}
