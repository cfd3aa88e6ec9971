package gossip

import (
	"errors"
	"fmt"
	"log"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

// transport carries memberlist's packets by UDP and its streams by TCP, both at one port, as
// memberlist.NetTransport does. But that one allocates 64 KiB before each packet, which was most of the
// garbage of an idle process.
type transport struct {
	ip      string
	log     *log.Logger
	streams net.Listener
	packets *net.UDPConn
	stop    chan struct{}
	once    sync.Once // closes stop
	running sync.WaitGroup

	packetCh chan *memberlist.Packet
	streamCh chan net.Conn
}

const (
	packetSize  = 64 << 10 // more than a UDP packet has
	packetQueue = 2 << 20  // bytes of packets that the system keeps, if it may: gossip comes in bursts
	listenTries = 10       // for a free port: it may be free for one of the protocols only
	// Behind errors in a row a loop rests for twice as long each time: without descriptors, every attempt fails.
	leastRest, mostRest = 5 * time.Millisecond, time.Second
	errorLogGap         = time.Second
)

// listen opens a port at an IP address. Port 0 takes a free one.
func listen(ip string, port int, logger *log.Logger) (t *transport, err error) {
	for range listenTries {
		if t, err = tryListen(ip, port, logger); err == nil || port != 0 {
			break
		}
	}
	return t, err
}

func tryListen(ip string, port int, logger *log.Logger) (*transport, error) {
	streams, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.ParseIP(ip), Port: port})
	if err != nil {
		return nil, err
	}
	t := &transport{
		ip: ip, log: logger, streams: streams, stop: make(chan struct{}),
		packetCh: make(chan *memberlist.Packet), streamCh: make(chan net.Conn),
	}
	if t.packets, err = net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(ip), Port: t.port()}); err != nil {
		return nil, errors.Join(err, streams.Close())
	}
	for size := packetQueue; size > 0 && t.packets.SetReadBuffer(size) != nil; size /= 2 {
	}
	t.running.Go(t.receive)
	t.running.Go(t.accept)
	return t, nil
}

func (t *transport) port() int { return t.streams.Addr().(*net.TCPAddr).Port }

// FinalAdvertiseAddr returns the given address, and the bound one if none is given.
func (t *transport) FinalAdvertiseAddr(ip string, port int) (net.IP, int, error) {
	if ip == "" {
		ip, port = t.ip, t.port()
	}
	addr := net.ParseIP(ip)
	if addr == nil {
		return nil, 0, fmt.Errorf("cannot parse advertise address %q", ip)
	}
	if v4 := addr.To4(); v4 != nil {
		addr = v4
	}
	return addr, port, nil
}

func (t *transport) WriteTo(b []byte, addr string) (time.Time, error) {
	to, err := net.ResolveUDPAddr("udp", addr)
	if err != nil {
		return time.Time{}, err
	}
	_, err = t.packets.WriteToUDP(b, to)
	return time.Now(), err
}

func (t *transport) WriteToAddress(b []byte, to memberlist.Address) (time.Time, error) {
	return t.WriteTo(b, to.Addr)
}

func (t *transport) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	return net.DialTimeout("tcp", addr, timeout)
}

func (t *transport) DialAddressTimeout(to memberlist.Address, timeout time.Duration) (net.Conn, error) {
	return t.DialTimeout(to.Addr, timeout)
}

func (t *transport) PacketCh() <-chan *memberlist.Packet { return t.packetCh }
func (t *transport) StreamCh() <-chan net.Conn           { return t.streamCh }

func (t *transport) Shutdown() error {
	t.once.Do(func() { close(t.stop) })
	err := errors.Join(t.streams.Close(), t.packets.Close())
	t.running.Wait()
	return err
}

// receive hands packets over, each in memory of its own: memberlist keeps parts of them.
func (t *transport) receive() {
	var row errorRow
	for buf := make([]byte, packetSize); ; {
		n, from, err := t.packets.ReadFromUDP(buf)
		if err != nil {
			if !t.rest(&row, "read packet", err) {
				return
			}
			continue
		}
		row.rest = 0
		if n == 0 {
			continue
		}
		p := &memberlist.Packet{Buf: append([]byte(nil), buf[:n]...), From: from, Timestamp: time.Now()}
		select {
		case t.packetCh <- p:
		case <-t.stop:
			return
		}
	}
}

// accept hands connections over.
func (t *transport) accept() {
	var row errorRow
	for {
		c, err := t.streams.Accept()
		if err != nil {
			if !t.rest(&row, "accept connection", err) {
				return
			}
			continue
		}
		row.rest = 0
		select {
		case t.streamCh <- c:
		case <-t.stop:
			c.Close()
			return
		}
	}
}

// errorRow has the errors of a loop since its last success.
type errorRow struct {
	rest   time.Duration // behind the last error; 0: none
	logged time.Time     // also before the last success
}

// rest waits behind an error. It returns false if the transport is shut down.
func (t *transport) rest(row *errorRow, what string, err error) bool {
	if isClosed(t.stop) {
		return false
	}
	if now := time.Now(); now.Sub(row.logged) >= errorLogGap {
		row.logged = now
		t.log.Printf("[ERR] memberlist: cannot %s: %v", what, err)
	}
	row.rest = min(max(2*row.rest, leastRest), mostRest)
	select {
	case <-t.stop:
		return false
	case <-time.After(row.rest):
		return true
	}
}
