// Command reconnect measures what TLS clients that reconnect all at once do to those who have
// stayed.
//
//	reconnect --addrs 127.0.0.1:6379,127.0.0.1:6380
//
// It compares the latencies of clients who stay, before others connect and until all of these have
// had a reply. The newcomers are a process of its own, with the lowest priority. So they compute
// their part of the handshakes in the time that the server and those who stay leave, as machines of
// their own would. They come from many addresses of 127.0.0.0/8, as from many hosts, and try again
// when they are turned away.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dunlin-cache/dunlin/bench/histogram"
)

var (
	addrs   = flag.String("addrs", "127.0.0.1:6379", "addresses of the servers, which speak TLS")
	clients = flag.Int("clients", 10_000, "how many clients connect at once")
	hosts   = flag.Int("hosts", 250, "how many addresses they come from")
	stay    = flag.Int("stay", 50, "how many clients stay, each with 20 requests a second")
	quiet   = flag.Duration("quiet", 10*time.Second, "for how long those are measured before")
	lowest  = flag.String("lowest", "nice -n 19", "the command that runs the newcomers, with lower priority than servers and those who stay")
	storm   = flag.Bool("storm", false, "be the newcomers; the command calls itself so")
)

const (
	period  = 50 * time.Millisecond // between two requests of a client who stays
	patient = time.Minute
	request = "*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n"
)

func main() {
	flag.Parse()
	run := measure
	if *storm {
		run = newcomers
	}
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

// dial connects from a host to a server, one after the other, and has the server answer a request.
func dial(ctx context.Context, host int) (net.Conn, error) {
	d := tls.Dialer{
		NetDialer: &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 1, byte(host>>8), byte(1+host))}},
		// The certificate is not checked: that is the clients' work alone.
		Config: &tls.Config{InsecureSkipVerify: true, CurvePreferences: []tls.CurveID{tls.X25519}},
	}
	servers := strings.Split(*addrs, ",")
	c, err := d.DialContext(ctx, "tcp", servers[host%len(servers)])
	if err != nil {
		return nil, err
	}
	if deadline, ok := ctx.Deadline(); ok {
		_ = c.SetDeadline(deadline)
	}
	if err := ask(c); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// ask sends a request and reads the reply, which says that there is no such key.
func ask(c net.Conn) error {
	if _, err := io.WriteString(c, request); err != nil {
		return err
	}
	var reply [5]byte
	if _, err := io.ReadFull(c, reply[:]); err != nil {
		return err
	}
	if string(reply[:]) != "$-1\r\n" {
		return fmt.Errorf("the reply begins with %q", reply)
	}
	return nil
}

// newcomers connects all at once, and holds all connections until standard input ends.
func newcomers() error {
	ctx, cancel := context.WithTimeout(context.Background(), patient)
	defer cancel()
	var all sync.WaitGroup
	var again, lost atomic.Int64
	held := make([]net.Conn, *clients)
	for i := range *clients {
		all.Go(func() {
			for ctx.Err() == nil {
				c, err := dial(ctx, i%*hosts)
				if err == nil {
					held[i] = c
					return
				}
				again.Add(1)
				time.Sleep(100 * time.Millisecond)
			}
			lost.Add(1)
		})
	}
	all.Wait()
	fmt.Printf("%d attempts were turned away, %d clients are not in\n", again.Load(), lost.Load())
	_, err := io.Copy(io.Discard, os.Stdin)
	runtime.KeepAlive(held)
	return err
}

// measure prints what becomes of those who stay.
func measure() error {
	var now atomic.Pointer[latencies]
	now.Store(new(latencies))
	var failed atomic.Pointer[error]
	begun := time.Now()
	for i := range *stay {
		c, err := dial(context.Background(), *hosts+i)
		if err != nil {
			return err
		}
		go func() {
			for due := begun.Add(time.Second + time.Duration(i)*period/time.Duration(*stay)); ; due = due.Add(period) {
				time.Sleep(time.Until(due))
				if err := ask(c); err != nil {
					failed.Store(&err)
					return
				}
				now.Load().add(time.Since(due))
			}
		}()
	}
	time.Sleep(2 * time.Second)
	now.Store(new(latencies))
	time.Sleep(*quiet)
	before := now.Swap(new(latencies))
	took, said, err := callStorm()
	during := now.Load()
	if err != nil {
		return err
	}
	if err := failed.Load(); err != nil {
		return fmt.Errorf("a client who stayed: %w", *err)
	}
	fmt.Printf("%d clients are in after %.1f s; %s\n", *clients, took.Seconds(), said)
	fmt.Printf("those who stayed: p50 %v, p99 %v, most %v before; p50 %v, p99 %v, most %v meanwhile\n",
		before.quantile(0.5), before.quantile(0.99), before.quantile(1), during.quantile(0.5), during.quantile(0.99), during.quantile(1))
	return nil
}

// callStorm runs the newcomers until all of them are in, and returns how long that took.
func callStorm() (took time.Duration, said string, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, "", err
	}
	words := append(strings.Fields(*lowest), self, "--storm")
	cmd := exec.Command(words[0], append(words[1:], os.Args[1:]...)...)
	cmd.Stderr = os.Stderr
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		return 0, "", err
	}
	begun := time.Now()
	line := make([]byte, 1024)
	n, err := out.Read(line)
	took = time.Since(begun)
	_ = in.Close()
	_ = cmd.Wait()
	return took, strings.TrimSpace(string(line[:n])), err
}

// latencies are those of all clients who stay.
type latencies struct {
	mu sync.Mutex
	histogram.Histogram
}

func (l *latencies) add(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Add(d, 1)
}

func (l *latencies) quantile(q float64) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Quantile(q).Round(time.Microsecond)
}
