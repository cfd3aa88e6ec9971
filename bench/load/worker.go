package load

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// drainLimit is how long a worker waits for the replies that are outstanding at the end of a
	// run.
	drainLimit = 30 * time.Second
	// maxOpen is how many commands a client of an open loop may have outstanding, unless one batch
	// is larger.
	maxOpen = 1024
	// maxWait bounds each wait, so that a worker notices when it must stop.
	maxWait = 20 * time.Millisecond
	// readBytes is how many bytes are read from a connection at a time.
	readBytes = 64 << 10
)

// client is one connection.
type client struct {
	fd, number  int
	replies     reader
	unsent      []byte        // bytes that the socket has not accepted
	outstanding int           // commands without a reply
	answered    int           // commands, since the start
	began       time.Duration // closed loop: the batch's beginning
	due, sent   int           // open loop: batches
	wasFull     bool          // open loop: batches had to wait for replies
}

// worker is a thread with its clients.
type worker struct {
	config      *Config
	clients     []*client
	poller      *poller
	requests    *writer
	in, out     []byte // for one read, for one batch
	stopped     *atomic.Bool
	begin       time.Time
	now         time.Duration // since begin; read once for each read of a connection
	outstanding int           // of all clients
	hits        int           // requested keys that existed
	result      Result

	// Of an open loop; interval 0: closed loop.
	interval, offset float64 // nanoseconds from one batch of the worker to the next, and to the first
	batches, due     int     // batches to send in all, and by now
}

func newWorker(c *Config, number, inOrder int, stopped *atomic.Bool) *worker {
	w := &worker{config: c, requests: newWriter(c, number, inOrder), in: make([]byte, readBytes), stopped: stopped}
	for range (c.Clients + c.Threads - 1 - number) / c.Threads {
		w.clients = append(w.clients, &client{fd: -1, number: len(w.clients),
			replies: reader{protocol: c.Protocol, want: c.ValueBytes}})
	}
	if c.Rate > 0 {
		each := float64(c.Pipeline) / c.Rate * 1e9
		w.interval, w.offset = each*float64(c.Threads), each*float64(number)
		w.batches = int(float64(c.Duration) / w.interval)
	}
	return w
}

func (w *worker) connect(addr netip.AddrPort) (err error) {
	if w.poller, err = newPoller(); err != nil {
		return err
	}
	for _, c := range w.clients {
		if c.fd, err = dial(addr); err != nil {
			return err
		}
		if err := w.poller.watch(syscall.EPOLL_CTL_ADD, c.fd, c.number, false); err != nil {
			return err
		}
	}
	return nil
}

func (w *worker) close() {
	for _, c := range w.clients {
		if c.fd >= 0 {
			_ = syscall.Close(c.fd) // every reply has arrived or is given up
		}
	}
	if w.poller != nil {
		_ = syscall.Close(w.poller.fd)
	}
}

// run sends and receives until every command is answered or an error occurs.
func (w *worker) run(begin time.Time) error {
	w.begin = begin
	w.now = time.Since(begin)
	if w.interval > 0 {
		exactTimers()
	} else if err := w.beginClosed(); err != nil {
		return err
	}
	for !w.stopped.Load() {
		if w.interval > 0 {
			if err := w.sendDue(); err != nil {
				return err
			}
		}
		if w.outstanding == 0 && (w.now >= w.config.Duration || w.requests.ended()) && w.due == w.batches {
			w.result.Elapsed = w.now
			w.result.Missed = w.requests.asked - w.hits
			return nil
		}
		if w.now > w.config.Duration+drainLimit {
			return fmt.Errorf("%d replies did not come within %v", w.outstanding, drainLimit)
		}
		n, err := w.poller.wait(w.timeout())
		if err != nil {
			return err
		}
		w.now = time.Since(w.begin)
		for i := range n {
			if err := w.serve(&w.poller.events[i]); err != nil {
				return err
			}
		}
	}
	return errors.New("stopped")
}

func (w *worker) timeout() time.Duration {
	switch {
	case w.interval == 0:
		return maxWait
	case w.due < w.batches:
		return min(w.intended(w.due)-time.Since(w.begin), maxWait)
	}
	return max(0, min(w.config.Duration-w.now, maxWait))
}

func (w *worker) serve(e *syscall.EpollEvent) error {
	c := w.clients[e.Fd]
	if e.Events&syscall.EPOLLOUT != 0 {
		if err := w.flush(c); err != nil {
			return err
		}
	}
	if e.Events&^syscall.EPOLLOUT == 0 {
		return nil
	}
	return w.receive(c)
}

func (w *worker) receive(c *client) error {
	for {
		n, err := syscall.Read(c.fd, w.in)
		switch {
		case errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EINTR):
			return nil
		case err != nil:
			return fmt.Errorf("cannot read: %w", err)
		case n == 0:
			return fmt.Errorf("the server has closed a connection with %d replies outstanding: %w",
				c.outstanding, io.ErrUnexpectedEOF)
		}
		w.now = time.Since(w.begin)
		replies, values, err := c.replies.feed(w.in[:n])
		if err != nil {
			return err
		}
		if err := w.count(c, replies, values); err != nil || n < len(w.in) {
			return err
		}
	}
}

// count adds replies to the result, and lets the client continue.
func (w *worker) count(c *client, replies, values int) error {
	c.outstanding -= replies
	w.outstanding -= replies
	w.result.Commands += replies
	w.hits += values
	if c.outstanding < 0 {
		return errors.New("there are more replies than commands")
	}
	if w.interval > 0 {
		w.countOpen(c, replies)
		return w.sendClientsDue(c)
	}
	w.result.Latency.Add(w.now-c.began, replies)
	if c.outstanding > 0 || w.now >= w.config.Duration {
		return nil
	}
	c.began = w.now
	return w.send(c)
}

// beginClosed sends the first batch of every client.
func (w *worker) beginClosed() error {
	for _, c := range w.clients {
		c.began = time.Since(w.begin)
		if err := w.send(c); err != nil {
			return err
		}
	}
	return nil
}

// send writes the next batch of a client.
func (w *worker) send(c *client) (err error) {
	var n int
	w.out, n = w.requests.appendBatch(w.out[:0], w.config.Pipeline)
	c.outstanding += n
	w.outstanding += n
	if len(c.unsent) > 0 {
		c.unsent = append(c.unsent, w.out...)
		return nil
	}
	sent, err := write(c.fd, w.out)
	if err != nil || sent == len(w.out) {
		return err
	}
	c.unsent = append(c.unsent, w.out[sent:]...)
	return w.poller.watch(syscall.EPOLL_CTL_MOD, c.fd, c.number, true)
}

// flush writes what the socket did not take before.
func (w *worker) flush(c *client) error {
	sent, err := write(c.fd, c.unsent)
	if err != nil {
		return err
	}
	c.unsent = c.unsent[:copy(c.unsent, c.unsent[sent:])]
	if len(c.unsent) > 0 {
		return nil
	}
	return w.poller.watch(syscall.EPOLL_CTL_MOD, c.fd, c.number, false)
}

func write(fd int, b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	n, err := syscall.Write(fd, b)
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EINTR) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("cannot write: %w", err)
	}
	return n, nil
}
