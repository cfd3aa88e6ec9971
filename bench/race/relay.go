package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"
)

// A relay is what no proxy can be quicker than: one thread that passes on bytes between clients and
// a node, and looks at none of them. Its clients wait for the same wake-ups as those of a proxy.

// relayCommand makes this program a relay: race relay LISTEN TARGET.
const relayCommand = "relay"

// startRelay starts a relay before one node of Dunlin.
func startRelay(s *stable, tools map[string]string) (*live, error) {
	l, err := single("relay+1", 0).start(s, tools)
	if err != nil {
		return l, err
	}
	self, err := os.Executable()
	if err != nil {
		return l, fmt.Errorf("cannot start a relay: %w", err)
	}
	node := l.addr
	l.addr = freeAddr()
	return l, l.add(s.start(roleProxy, "relay", self, relayCommand, l.addr, node))
}

// relay accepts clients for ever, and passes their bytes on.
type relay struct {
	target          syscall.SockaddrInet4
	epoll, listener int
	other           map[int]int // the socket of the other side
	buffer          []byte
}

// runRelay returns an error only.
func runRelay(listen, target string) error {
	at, err := sockaddr(listen)
	if err != nil {
		return err
	}
	to, err := sockaddr(target)
	if err != nil {
		return err
	}
	r := &relay{target: *to, other: map[int]int{}, buffer: make([]byte, 64<<10)}
	if r.epoll, err = syscall.EpollCreate1(syscall.EPOLL_CLOEXEC); err != nil {
		return os.NewSyscallError("epoll_create1", err)
	}
	if r.listener, err = syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0); err != nil {
		return os.NewSyscallError("socket", err)
	}
	// Connections of an earlier listener at this port may still be in TIME_WAIT.
	if err := syscall.SetsockoptInt(r.listener, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return os.NewSyscallError("setsockopt", err)
	}
	if err := syscall.Bind(r.listener, at); err != nil {
		return os.NewSyscallError("bind", err)
	}
	if err := syscall.Listen(r.listener, 1024); err != nil {
		return os.NewSyscallError("listen", err)
	}
	if err := r.watch(r.listener); err != nil {
		return err
	}
	for events := make([]syscall.EpollEvent, 128); ; {
		n, err := syscall.EpollWait(r.epoll, events, -1)
		if err != nil && !errors.Is(err, syscall.EINTR) {
			return os.NewSyscallError("epoll_wait", err)
		}
		accepts := false
		for _, e := range events[:max(n, 0)] {
			if fd := int(e.Fd); fd == r.listener {
				accepts = true
			} else if to, open := r.other[fd]; open {
				r.pass(fd, to)
			}
		}
		if accepts { // last: a new socket may have the number of one that was closed
			r.accept()
		}
	}
}

func sockaddr(addr string) (*syscall.SockaddrInet4, error) {
	host, portText, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	port, err := strconv.Atoi(portText)
	ip := net.ParseIP(host).To4()
	if err != nil || ip == nil {
		return nil, fmt.Errorf("cannot use %q: want an IPv4 address and a port", addr)
	}
	return &syscall.SockaddrInet4{Port: port, Addr: [4]byte(ip)}, nil
}

func (r *relay) watch(fd int) error {
	e := syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(fd)}
	return os.NewSyscallError("epoll_ctl", syscall.EpollCtl(r.epoll, syscall.EPOLL_CTL_ADD, fd, &e))
}

// accept connects a client with the node. If that fails, it closes the client.
func (r *relay) accept() {
	client, _, err := syscall.Accept(r.listener)
	if err != nil {
		return
	}
	server, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		_ = syscall.Close(client)
		return
	}
	err = syscall.Connect(server, &r.target)
	for _, fd := range []int{client, server} {
		err = errors.Join(err, syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1), r.watch(fd))
	}
	if err != nil {
		_, _ = syscall.Close(client), syscall.Close(server)
		return
	}
	r.other[client], r.other[server] = server, client
}

// pass passes on what one read gets; the sockets block, and so does the relay if a side is slow.
func (r *relay) pass(from, to int) {
	n, err := syscall.Read(from, r.buffer)
	for b := r.buffer[:max(n, 0)]; len(b) > 0 && err == nil; {
		var wrote int
		if wrote, err = syscall.Write(to, b); errors.Is(err, syscall.EINTR) {
			err = nil
		}
		b = b[max(wrote, 0):]
	}
	if n > 0 && err == nil || errors.Is(err, syscall.EINTR) {
		return
	}
	delete(r.other, from)
	delete(r.other, to)
	_, _ = syscall.Close(from), syscall.Close(to)
}
