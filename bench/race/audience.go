package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// seatDials is how many clients connect at a time.
	seatDials = 32
	// seatsBySource is how many clients share an address: each needs a port of its own.
	seatsBySource = 20_000
	// seatLimit bounds what the audience waits for.
	seatLimit = 30 * time.Second
)

// audience is many clients that receive what others send. All together have what is wanted when they have so many
// bytes.
type audience struct {
	conns []net.Conn
	bytes atomic.Int64 // that they have received
	want  atomic.Int64
	all   chan struct{} // they have what is wanted
	ended sync.WaitGroup
}

// seat connects clients, to all addresses in turns. Each sends greeting, which is first answered with answer.
func seat(ctx context.Context, addrs []string, count int, greeting, answer string) (a *audience, err error) {
	a = &audience{conns: make([]net.Conn, count), all: make(chan struct{}, 1)}
	var next atomic.Int64
	errs := make([]error, min(count, seatDials))
	var dials sync.WaitGroup
	for d := range errs {
		dials.Go(func() {
			for i := int(next.Add(1)) - 1; i < count && errs[d] == nil; i = int(next.Add(1)) - 1 {
				a.conns[i], errs[d] = seatAt(ctx, addrs[i%len(addrs)], i/seatsBySource, greeting, answer)
			}
		})
	}
	dials.Wait()
	if err := errors.Join(errs...); err != nil {
		a.close()
		return nil, err
	}
	for _, conn := range a.conns {
		a.ended.Go(func() { a.listen(conn) })
	}
	return a, nil
}

// seatAt connects a client from the address of that number of this machine.
func seatAt(ctx context.Context, addr string, source int, greeting, answer string) (conn net.Conn, err error) {
	from := &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(1+source))}
	dialer := net.Dialer{Timeout: askLimit, LocalAddr: from, Control: portLater}
	if conn, err = dialer.DialContext(ctx, "tcp", addr); err != nil {
		return nil, err
	}
	reply := make([]byte, len(answer))
	_ = conn.SetDeadline(time.Now().Add(seatLimit)) // reading shows an error
	if _, err = io.WriteString(conn, greeting); err == nil {
		_, err = io.ReadFull(conn, reply)
	}
	if err == nil && string(reply) != answer {
		err = fmt.Errorf("%.30q is answered %q", greeting, reply)
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	_ = conn.SetDeadline(time.Time{})
	return conn, nil
}

// bindAddressNoPort is IP_BIND_ADDRESS_NO_PORT, see ip(7).
const bindAddressNoPort = 24

// portLater has the system choose the port of a connection when it knows the other end: then those that have just
// ended keep none from a new one.
func portLater(_, _ string, c syscall.RawConn) error {
	var refused error
	err := c.Control(func(fd uintptr) {
		refused = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_IP, bindAddressNoPort, 1)
	})
	return errors.Join(err, refused)
}

// listen counts what a client receives until it is closed.
func (a *audience) listen(conn net.Conn) {
	buf := make([]byte, 4<<10)
	for {
		n, err := conn.Read(buf)
		if n > 0 && a.bytes.Add(int64(n)) == a.want.Load() {
			a.all <- struct{}{}
		}
		if err != nil {
			return
		}
	}
}

func (a *audience) close() {
	for _, conn := range a.conns {
		if conn != nil {
			_ = conn.Close()
		}
	}
	a.ended.Wait()
}

// await waits until all have what is wanted.
func (a *audience) await(ctx context.Context) error {
	select {
	case <-a.all:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(seatLimit):
		return fmt.Errorf("they have %d bytes after %v, and want %d",
			a.bytes.Load(), seatLimit, a.want.Load())
	}
}
