package harness

import (
	"bytes"
	"debug/elf"
	le "encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A test can give a member a wall clock that is hours off. All code in the process, libraries too,
// then reads the wrong time; only the monotonic clock stays right. The binary needs no change.
// Before its first instruction, the test overwrites clock_gettime in the vDSO (the page of kernel
// code that lets a process read the time without a system call), as a debugger writes a breakpoint.
// The kernel copies the page on this write, so no other process sees the change.

// clockCode replaces clock_gettime(edi, *rsi) on amd64. It makes the system call and adds an offset
// in seconds to the wall clock's time. The offset replaces the zeros.
var clockCode = []byte{
	0xB8, 228, 0, 0, 0, //  mov eax, 228
	0x0F, 0x05, //          syscall
	0x85, 0xFF, //          test edi, edi; CLOCK_REALTIME is 0
	0x75, 13, //            jnz to the return
	0x48, 0xB9, 0, 0, 0, 0, 0, 0, 0, 0, // mov rcx, seconds
	0x48, 0x01, 0x0E, //    add [rsi], rcx
	0xC3, //                ret
}

const clockSeconds = 13 // index of the offset in clockCode

// errNoClock says that a process cannot have a clock of its own on this system.
var errNoClock = errors.New("only by ptrace, on amd64, where processes read the clock in a vDSO")

// startAt starts a process whose wall clock is off by whole seconds.
func startAt(cmd *exec.Cmd, off time.Duration) error {
	if runtime.GOARCH != "amd64" {
		return errNoClock
	}
	runtime.LockOSThread() // only the thread that started a process can trace it
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr.Ptrace = true
	err := cmd.Start()
	if errors.Is(err, unix.EPERM) {
		err = errNoClock
	}
	if err != nil {
		return err
	}
	pid := cmd.Process.Pid
	var stopped unix.WaitStatus
	if _, err = unix.Wait4(pid, &stopped, 0, nil); err == nil {
		err = setClock(pid, off)
	}
	if err = errors.Join(err, unix.PtraceDetach(pid)); err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	return err
}

func setClock(pid int, off time.Duration) error {
	begin, image, err := vdso(pid)
	if err != nil {
		return fmt.Errorf("cannot read the vDSO: %w", err)
	}
	file, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return fmt.Errorf("cannot read the vDSO: %w", err)
	}
	symbols, err := file.DynamicSymbols()
	if err != nil {
		return fmt.Errorf("cannot read the vDSO: %w", err)
	}
	for _, s := range symbols {
		if s.Name == "__vdso_clock_gettime" && s.Size >= uint64(len(clockCode)) {
			code := bytes.Clone(clockCode)
			le.LittleEndian.PutUint64(code[clockSeconds:], uint64(off/time.Second))
			_, err = unix.PtracePokeText(pid, begin+uintptr(s.Value), code)
			return err
		}
	}
	return errNoClock
}

// vdso returns the address and the content of a process's vDSO.
func vdso(pid int) (begin uintptr, image []byte, err error) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return 0, nil, err
	}
	for line := range strings.Lines(string(maps)) {
		if !strings.HasSuffix(line, "[vdso]\n") {
			continue
		}
		from, to, _ := strings.Cut(strings.Fields(line)[0], "-")
		first, err1 := strconv.ParseUint(from, 16, 63)
		last, err2 := strconv.ParseUint(to, 16, 63)
		memory, err3 := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
		if err := errors.Join(err1, err2, err3); err != nil {
			return 0, nil, err
		}
		defer memory.Close()
		image = make([]byte, last-first)
		_, err = io.ReadFull(io.NewSectionReader(memory, int64(first), int64(len(image))), image)
		return uintptr(first), image, err
	}
	return 0, nil, errNoClock
}
