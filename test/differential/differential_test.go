package differential

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/redistest"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// The differential run sends generated inputs, mostly broken ones, to a node, to a proxy with three
// nodes and to a real redis-server. All must answer the same bytes, and keep or close the
// connection alike. Other connections must work meanwhile.
//
//	go test -run Differential ./test/differential -differential.inputs 1000000 -differential.seed 7
var (
	differentialInputs = flag.Int("differential.inputs", 20_000, "how many inputs the differential run compares")
	differentialSeed   = flag.Uint64("differential.seed", 0, "seed of the inputs, 0 for a new one")
)

const (
	// transcriptTime bounds the wait for all replies to one batch, on a busy machine.
	transcriptTime = 30 * time.Second
	batchInputs    = 40
	batchBytes     = 32 << 10 // sockets accept this much even if nobody reads
	shownDiffs     = 5
)

func TestDifferential(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	node := harness.StartCluster(t, 1, 0).Node(0).Addr
	proxy := harness.StartCluster(t, 3, 1).Proxy(0).Addr
	awaitDatabases(t, node)
	awaitDatabases(t, proxy)
	seed, inputs := *differentialSeed, *differentialInputs
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	if testing.Short() {
		inputs = min(inputs, 2_000)
	}
	d := &differential{report: t.Errorf, rng: rand.New(rand.NewPCG(seed, 0)), targets: []*target{
		{name: "redis-server", addr: redis}, {name: "node", addr: node}, {name: "proxy", addr: proxy},
	}}
	defer d.hangUp()
	stop := make(chan struct{})
	var others sync.WaitGroup
	for _, g := range d.targets {
		others.Go(func() { bystand(t, g, stop) })
	}
	begin := time.Now()
	for d.inputs < inputs && d.differences < shownDiffs {
		d.compare(d.next())
	}
	close(stop)
	others.Wait()
	t.Logf("seed %d: %d inputs in %d batches, %d of them cut short, %d refused, %d refused by Dunlin only, %d dismissed; %d bytes of replies; %.1f s",
		seed, d.inputs, d.batches, d.ended[cutShort], d.ended[refused], d.ended[stricter],
		d.ended[dismissed], d.replied, time.Since(begin).Seconds())
}

// awaitDatabases waits until a cluster has the level at which databases can be selected.
func awaitDatabases(t *testing.T, addr string) {
	w := harness.DialWire(t, addr)
	harness.Eventually(t, harness.ReadyTimeout, "databases can be selected", func() bool {
		return string(w.Do("SELECT 1")) == "+OK\r\n"
	})
	w.Conn.Close()
}

// ending is what a server does with a connection after a batch.
type ending uint8

const (
	staysOpen ending = iota
	cutShort         // the last input is incomplete: only the end of the stream follows
	refused          // the last input ends the connection with an error text
	stricter         // the same, but only in Dunlin
	quits            // QUIT
	dismissed        // the last input is a browser's request, which gets no answer
	endings
)

// batch is what one connection sends at a time. Only its last input may end the connection, because
// the server would not read any further.
type batch struct {
	bytes   []byte
	inputs  int
	end     ending
	refusal string // if Dunlin is stricter, its answer
	common  int    // if Dunlin is stricter, how many bytes Redis gets too
	pieces  []int  // where the sender divides the bytes
}

// target is a server and the connection on which batches are sent to it.
type target struct {
	name, addr string
	patience   time.Duration // for one batch; 0: transcriptTime
	conn       net.Conn
}

type differential struct {
	report      func(format string, args ...any)
	rng         *rand.Rand
	targets     []*target // Redis first
	dismissal   []byte    // an input for a batch of its own
	inputs      int
	batches     int
	ended       [endings]int
	replied     int
	differences int
}

// next generates a batch.
func (d *differential) next() (b batch) {
	m := mutator{d.rng}
	for b.inputs < batchInputs && len(b.bytes) < batchBytes && b.end == staysOpen {
		in := m.input()
		if d.dismissal != nil {
			in, d.dismissal = d.dismissal, nil
		}
		f := foresee(in)
		if !f.comparable {
			continue
		}
		// It closes the connection at once, in Redis too. Whether earlier replies have been sent by
		// then is a matter of timing, so it goes alone and in one piece.
		if f.end == dismissed && b.inputs > 0 {
			d.dismissal = in
			break
		}
		b.end, b.refusal, b.common = f.end, f.refusal, len(b.bytes)+f.common
		b.bytes = append(b.bytes, in[:f.used]...)
		b.inputs++
	}
	if b.end != dismissed {
		b.pieces = m.cuts(len(b.bytes))
	}
	return b
}

// compare sends a batch to all targets, and reports how their answers differ.
func (d *differential) compare(b batch) {
	d.batches++
	d.inputs += b.inputs
	d.ended[b.end]++
	answers := make([]string, len(d.targets))
	version3 := d.targets[0].conn == nil && d.rng.IntN(2) == 0
	mark := d.rng.Uint64()
	var asked sync.WaitGroup
	for i, g := range d.targets {
		asked.Go(func() {
			sent := b
			if b.end == stricter && i == 0 {
				sent.bytes, sent.end = b.bytes[:b.common], staysOpen
			}
			answers[i] = g.answer(sent, version3, mark)
		})
	}
	asked.Wait()
	want := answers[0]
	if b.end == stricter {
		want = strings.TrimSuffix(want, stillOpen) + "-" + b.refusal + "\r\n" + isClosed
	}
	d.replied += len(want)
	for i, g := range d.targets[1:] {
		if got := answers[i+1]; got != want {
			d.differences++
			at := diverge(got, want)
			d.report("%s answers from byte %d\n%.300q\nwant\n%.300q\nto\n%.3000q\ncut at %v", g.name,
				at, got[at:], want[at:], b.bytes, b.pieces)
		}
	}
	if b.end != staysOpen || want == "" || d.differences > 0 {
		d.hangUp()
	}
}

// diverge returns the index at which two answers begin to differ, less some bytes of context.
func diverge(a, b string) int {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	return max(0, i-40)
}

func (d *differential) hangUp() {
	for _, g := range d.targets {
		g.hangUp()
	}
}

// hangUp closes the connection without leaving a socket in TIME_WAIT: a run opens hundreds of
// thousands.
func (g *target) hangUp() {
	if g.conn != nil {
		_ = g.conn.(*net.TCPConn).SetLinger(0)
		g.conn.Close()
		g.conn = nil
	}
}

// These requests follow each batch and mark the end of its replies.
const (
	stillOpen = "(open)"
	isClosed  = "(closed)"
)

// answer sends a batch, and returns all replies and whether the server then closed the connection.
func (g *target) answer(b batch, version3 bool, mark uint64) string {
	if g.conn == nil {
		if err := g.dial(version3); err != nil {
			return err.Error()
		}
	}
	_ = g.conn.SetDeadline(time.Now().Add(cmp.Or(g.patience, transcriptTime)))
	var until []byte
	if b.end == staysOpen {
		word := fmt.Appendf(nil, "mark %d", mark)
		b.bytes = resp.AppendRequest(b.bytes[:len(b.bytes):len(b.bytes)], []byte("ECHO"), word)
		until = resp.AppendBulk(nil, word)
	}
	if err := g.send(b); err != nil {
		return err.Error()
	}
	if b.end == cutShort {
		_ = g.conn.(*net.TCPConn).CloseWrite()
	}
	return g.receive(until)
}

func (g *target) dial(version3 bool) (err error) {
	if g.conn, err = net.DialTimeout("tcp", g.addr, transcriptTime); err != nil || !version3 {
		return err
	}
	_ = g.conn.SetDeadline(time.Now().Add(transcriptTime))
	if _, err = io.WriteString(g.conn, "HELLO 3\r\n"); err != nil {
		return err
	}
	l := harness.Link{Conn: g.conn}
	_, err = l.Receive(time.Now().Add(transcriptTime)) // not compared: versions and ids differ
	return err
}

func (g *target) send(b batch) error {
	begin := 0
	for _, end := range append(slices.Clone(b.pieces), len(b.bytes)) {
		if end = min(end, len(b.bytes)); end == begin && end < len(b.bytes) {
			continue
		}
		if _, err := g.conn.Write(b.bytes[begin:end]); err != nil {
			return err
		}
		begin = end
	}
	return nil
}

// receive reads until the end of the stream or until the bytes that mark the end of the replies.
func (g *target) receive(until []byte) string {
	var in []byte
	piece := make([]byte, 16<<10)
	for {
		n, err := g.conn.Read(piece)
		in = append(in, piece[:n]...)
		switch {
		case until != nil && bytes.HasSuffix(in, until):
			return string(in[:len(in)-len(until)]) + stillOpen
		case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
			return string(in) + isClosed
		case errors.Is(err, os.ErrDeadlineExceeded):
			return string(in) + "(nothing more)"
		case err != nil:
			return string(in) + err.Error()
		}
	}
}

// bystand uses another connection to the same server, which must work as usual.
func bystand(t *testing.T, g *target, stop chan struct{}) {
	l, err := harness.DialLink(g.addr)
	if err != nil {
		t.Error(err)
		return
	}
	defer l.Conn.Close()
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		case <-time.After(5 * time.Millisecond):
		}
		key, value := fmt.Appendf(nil, "bystander:%d", i%100), fmt.Appendf(nil, "value %d", i)
		out := resp.AppendRequest(nil, []byte("SET"), key, value)
		err := l.Send(resp.AppendRequest(out, []byte("GET"), key))
		for _, want := range []string{"+OK\r\n", string(resp.AppendBulk(nil, value))} {
			var reply []byte
			if err == nil {
				reply, err = l.Receive(time.Now().Add(transcriptTime))
			}
			if err != nil || string(reply) != want {
				t.Errorf("%s: another connection gets %.80q, %v, want %q", g.name, reply, err, want)
				return
			}
		}
	}
}
