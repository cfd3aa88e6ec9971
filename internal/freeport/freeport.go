// Package freeport chooses the ports of servers that tests and benchmarks start. Several test processes run
// at the same time. A port that was merely free when one of them looked may be another's by the time that its
// server binds it, or while its server is down to be started again:
//
//	go test  a: free? yes ── chosen ─ locked until a ends ──────────── server binds
//	go test  b:      free? yes, but locked: another port
package freeport

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// The ports are below those that the system gives to outgoing connections, and to whoever asks for port 0.
const (
	lowest = 12_000
	count  = 20_000
	tries  = 1_000
)

// Choose returns a port of the loopback interface that is free for TCP and UDP. Nobody else whom this package
// serves gets it before the process has ended.
func Choose() (port int, err error) { return ChooseRow(1) }

// ChooseRow is Choose for n ports in a row. It returns the first.
func ChooseRow(n int) (first int, err error) {
	dir := filepath.Join(os.TempDir(), "dunlin-ports")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return 0, fmt.Errorf("cannot lock a port: %w", err)
	}
	_ = os.Chmod(dir, 0o777) // whatever the umask is; another user's directory is so already
	for range tries {
		first = lowest + rand.IntN(count)
		if err = chooseRow(dir, first, n); err == nil {
			return first, nil
		}
	}
	return 0, fmt.Errorf("cannot find %d free ports: %w", n, err)
}

func chooseRow(dir string, first, n int) error {
	if n == 0 {
		return nil
	}
	unlock, err := lock(filepath.Join(dir, strconv.Itoa(first)))
	if err != nil {
		return err
	}
	if err = probe(Loopback(first)); err == nil {
		err = chooseRow(dir, first+1, n-1)
	}
	if err != nil {
		unlock()
	}
	return err
}

// Loopback returns the address of a port of the loopback interface.
func Loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// lock locks a file, which it makes. The process keeps it, unless unlock is called: the descriptor is never
// closed, and no process that is started inherits it.
func lock(path string) (unlock func(), err error) {
	file, err := syscall.Open(path, syscall.O_CREAT|syscall.O_RDWR|syscall.O_CLOEXEC, 0o666)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(file, syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = syscall.Close(file)
		return nil, err
	}
	return func() { _ = syscall.Close(file) }, nil
}

// probe returns nil if the address is free.
func probe(addr string) error {
	tcp, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	defer func() { _ = tcp.Close() }()
	udp, err := net.ListenPacket("udp", addr)
	if err != nil {
		return err
	}
	return udp.Close()
}
