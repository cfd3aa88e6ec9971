package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// depot is what many producers put into lists and sorted sets, and many consumers take out of them.
//
//	producers   LPUSH, RPUSH of several, MULTI, EVAL, ZADD
//	consumers   BLPOP … of one key, and of keys of several slots; they leave, and are unblocked
//
// It knows of each element when it was there, and who has it.
type depot struct {
	mu       sync.Mutex
	wanted   map[string]time.Time // elements that nobody has yet: when they were there for sure
	taken    map[string]string    // by whom
	waiting  map[string]wait      // consumers that wait
	problems []string
	slowest  time.Duration
}

// wait is what a consumer waits for.
type wait struct {
	line  string
	since time.Time
}

const (
	depotLists, depotSets = 6, 3
	// takeTime is how long an element may lie in a queue while a consumer waits for it. The rest of it is for a
	// machine that stands still.
	takeTime = 5 * time.Second
)

func (d *depot) fail(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.problems) < 10 {
		d.problems = append(d.problems, fmt.Sprintf(format, args...))
	}
}

// put notes elements that are about to be pushed, and returns what notes that they have been.
func (d *depot) put(elements []string) (done func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range elements {
		d.wanted[e] = time.Time{}
	}
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		for _, e := range elements {
			if _, open := d.wanted[e]; open {
				d.wanted[e] = time.Now()
			}
		}
	}
}

// take notes that a consumer, who has waited since then, has an element.
func (d *depot) take(element, who string, since time.Time) {
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	there, open := d.wanted[element]
	if !open {
		d.problems = append(d.problems, fmt.Sprintf("%s has %q, which %q has", who, element, d.taken[element]))
		return
	}
	delete(d.wanted, element)
	d.taken[element] = who
	if there.IsZero() {
		return
	}
	if there.Before(since) {
		there = since
	}
	if d.slowest = max(d.slowest, now.Sub(there)); now.Sub(there) > takeTime {
		d.problems = append(d.problems, fmt.Sprintf("%s has %q, which lay there for %v while it waited", who, element, now.Sub(there)))
	}
}

func (d *depot) begins(who, line string) (since time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting[who] = wait{line, time.Now()}
	return d.waiting[who].since
}

func (d *depot) ends(who string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.waiting, who)
}

// open returns how many elements nobody has.
func (d *depot) open() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.wanted)
}

// produce pushes elements in one way or another.
func (d *depot) produce(l *harness.Link, name string, rng *rand.Rand, rounds int) error {
	serial := 0
	fresh := func(n int) (elements []string) {
		for range n {
			serial++
			elements = append(elements, name+"-"+strconv.Itoa(serial))
		}
		return elements
	}
	for range rounds {
		list, set := fmt.Sprintf("q:%d", rng.IntN(depotLists)), fmt.Sprintf("z:%d", rng.IntN(depotSets))
		var elements []string
		var lines []string
		switch rng.IntN(6) {
		case 0:
			elements = fresh(1)
			lines = []string{"LPUSH " + list + " " + elements[0]}
		case 1:
			elements = fresh(1 + rng.IntN(5))
			lines = []string{"RPUSH " + list + " " + strings.Join(elements, " ")}
		case 2:
			elements = fresh(3)
			lines = []string{"MULTI", "RPUSH " + list + " " + elements[0], "LPUSH " + list + " " + elements[1], "RPUSH " + list + " " + elements[2], "EXEC"}
		case 3:
			elements = fresh(2)
			lines = []string{fmt.Sprintf(`EVAL "return redis.call('RPUSH',KEYS[1],ARGV[1],ARGV[2])" 1 %s %s`, list, strings.Join(elements, " "))}
		case 4:
			elements = fresh(1 + rng.IntN(3))
			lines = []string{"ZADD " + set}
			for i, e := range elements {
				lines[0] += fmt.Sprintf(" %d %s", i, e)
			}
		case 5: // one behind the other, without an answer in between
			elements = fresh(4)
			for _, e := range elements {
				lines = append(lines, "RPUSH "+list+" "+e)
			}
		}
		done := d.put(elements)
		if err := l.Send([]byte(strings.Join(lines, "\r\n") + "\r\n")); err != nil {
			return err
		}
		for range lines {
			reply, err := l.Receive(time.Now().Add(harness.AnswerTime))
			if err != nil || resp.IsError(reply) {
				return fmt.Errorf("%q: %q, %w", lines, reply, err)
			}
		}
		done()
		if rng.IntN(3) > 0 {
			harness.SleepUpTo(3*time.Millisecond, rng)
		}
	}
	return nil
}

// popLine is a random blocking command.
func popLine(rng *rand.Rand) (line string) {
	limit := []string{"0", "0.01", "0.05", "0.5", "0"}[rng.IntN(5)]
	names := func(kind string, of, n int) (names []string) {
		for _, i := range rng.Perm(of)[:n] {
			names = append(names, kind+":"+strconv.Itoa(i))
		}
		return names
	}
	one, some := names("q", depotLists, 1)[0], strings.Join(names("q", depotLists, 3), " ")
	sets := strings.Join(names("z", depotSets, 2), " ")
	return []string{
		"BLPOP " + one + " " + limit,
		"BRPOP " + one + " " + limit,
		"BLMPOP " + limit + " 1 " + one + " LEFT COUNT 2",
		"BLMOVE " + one + " {" + one + "}moved LEFT RIGHT " + limit,
		"BLPOP " + some + " " + limit,
		"BRPOP " + some + " " + limit,
		"BLMPOP " + limit + " 3 " + some + " RIGHT COUNT 3",
		"BZPOPMIN z:" + strconv.Itoa(rng.IntN(depotSets)) + " " + limit,
		"BZPOPMAX " + sets + " " + limit,
		"BZMPOP " + limit + " 2 " + sets + " MIN",
	}[rng.IntN(10)]
}

// poppedElements returns the elements of a reply: their names begin with those of producers.
func poppedElements(reply []byte) (elements []string) {
	for part := range strings.SplitSeq(string(reply), "\r\n") {
		if strings.HasPrefix(part, "p") {
			elements = append(elements, part)
		}
	}
	return elements
}

// consume takes elements until stop is closed, and once more then.
func (d *depot) consume(addr, name string, rng *rand.Rand, stop chan struct{}) error {
	l, err := harness.DialLink(addr)
	if err != nil {
		return err
	}
	defer func() { l.Conn.Close() }()
	for stopped := false; !stopped; {
		line := popLine(rng)
		since := d.begins(name, line)
		if err := l.Send([]byte(line + "\r\n")); err != nil {
			return err
		}
		leaves := rng.IntN(8) == 0 && !strings.HasPrefix(line, "BLMOVE") // which is not undone
		if leaves {                                                      // everything that is on its way to it still comes, and what is not goes back
			harness.SleepUpTo(5*time.Millisecond, rng)
			_ = l.Conn.(*net.TCPConn).CloseWrite()
		}
		var reply []byte
		for err = errWaits; errors.Is(err, errWaits); {
			reply, err = d.receive(l, stop)
		}
		switch {
		case leaves && (err == io.EOF || errors.Is(err, net.ErrClosed) || err != nil && strings.Contains(err.Error(), "reset")):
		case errors.Is(err, errStopped):
			d.ends(name)
			return nil
		case err != nil:
			return fmt.Errorf("%s: %s: %w", name, line, err)
		case resp.IsError(reply) && !bytes.HasPrefix(reply, []byte("-UNBLOCKED")):
			return fmt.Errorf("%s: %s: %q", name, line, reply)
		default:
			for _, e := range poppedElements(reply) {
				d.take(e, name, since)
			}
		}
		d.ends(name)
		if leaves {
			l.Conn.Close()
			next, err := harness.DialLink(addr)
			if err != nil {
				return err
			}
			l = next
		}
		select {
		case <-stop:
			stopped = true
		default:
		}
	}
	return nil
}

var errWaits, errStopped = errors.New("it waits"), errors.New("it is told to stop")

// receive returns the next reply, errWaits after a while, and errStopped if that is after the end.
func (d *depot) receive(l *harness.Link, stop chan struct{}) ([]byte, error) {
	reply, err := l.Receive(time.Now().Add(50 * time.Millisecond))
	var late net.Error
	if !errors.As(err, &late) || !late.Timeout() {
		return reply, err
	}
	select {
	case <-stop:
		return nil, errStopped
	default:
		return nil, errWaits
	}
}

// unblock ends waits of random clients of a proxy until stop is closed.
func (d *depot) unblock(addr string, rng *rand.Rand, stop chan struct{}) error {
	l, err := harness.DialLink(addr)
	if err != nil {
		return err
	}
	defer l.Conn.Close()
	do := func(line string) (reply []byte) {
		if err == nil {
			err = l.Send([]byte(line + "\r\n"))
		}
		if err == nil {
			reply, err = l.Receive(time.Now().Add(harness.AnswerTime))
		}
		return reply
	}
	for err == nil {
		select {
		case <-stop:
			return nil
		default:
		}
		var ids []string
		for line := range strings.SplitSeq(string(do("CLIENT LIST")), "\n") {
			if strings.Contains(line, " flags=b") {
				id, _, _ := strings.Cut(strings.TrimPrefix(line, "id="), " ")
				ids = append(ids, id)
			}
		}
		if len(ids) > 0 {
			do("CLIENT UNBLOCK " + ids[rng.IntN(len(ids))] + []string{"", " ERROR"}[rng.IntN(2)])
		}
		harness.SleepUpTo(5*time.Millisecond, rng)
	}
	return err
}

// TestQueues has many consumers and producers at work: each element goes to one consumer, none is lost, and none
// lies in a queue while a consumer waits for it.
func TestQueues(t *testing.T) {
	t.Parallel()
	c := harness.StartCluster(t, 3, 2)
	for i := range 2 {
		harness.AwaitLevel(t, c.Proxy(i).Addr)
	}
	const consumers, producers = 40, 4
	rounds := 400
	if testing.Short() {
		rounds = 150
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	d := &depot{wanted: map[string]time.Time{}, taken: map[string]string{}, waiting: map[string]wait{}}
	stop := make(chan struct{})
	var takers, makers sync.WaitGroup
	begun := uint64(0)
	run := func(g *sync.WaitGroup, f func(rng *rand.Rand) error) {
		begun++
		rng := rand.New(rand.NewPCG(seed, begun))
		g.Go(func() {
			if err := f(rng); err != nil {
				d.fail("%v", err)
			}
		})
	}
	addr := func(i int) string { return c.Proxy(i % 2).Addr }
	for i := range consumers {
		run(&takers, func(rng *rand.Rand) error { return d.consume(addr(i), fmt.Sprintf("c%d", i), rng, stop) })
	}
	for i := range 2 {
		run(&takers, func(rng *rand.Rand) error { return d.unblock(addr(i), rng, stop) })
	}
	for i := range producers {
		run(&makers, func(rng *rand.Rand) error {
			l, err := harness.DialLink(addr(i))
			if err != nil {
				return err
			}
			defer l.Conn.Close()
			return d.produce(l, fmt.Sprintf("p%d", i), rng, rounds)
		})
	}
	makers.Wait()
	if why := gaveUp(t, c.Members); why != "" { // an element may have gone with its pipe
		close(stop)
		takers.Wait()
		t.Skipf("a node was given up, so this does not count: %s", why)
	}
	pushed := d.pushed()
	d.settle(t, addr(0))
	close(stop)
	takers.Wait()
	d.judge(t, addr(1))
	t.Logf("%d elements, the slowest after %v", pushed, d.slowest)
}

func (d *depot) pushed() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.wanted) + len(d.taken)
}

// settle waits until nothing is left that a consumer waits for.
func (d *depot) settle(t *testing.T, addr string) {
	t.Helper()
	w := harness.DialWire(t, addr)
	left := ""
	harness.Eventually(t, takeTime+harness.ReplyTimeout, "nothing lies in a queue", func() bool {
		if d.open() == 0 {
			return true
		}
		left = ""
		for i := range depotLists + depotSets {
			key, command := fmt.Sprintf("q:%d", i), "LLEN "
			if i >= depotLists {
				key, command = fmt.Sprintf("z:%d", i-depotLists), "ZCARD "
			}
			if n := strings.Trim(string(w.Do(command+key)), ":\r\n"); n != "0" {
				left += d.waitersOf(key, n)
			}
		}
		return false
	}, func() string { return left })
}

// waitersOf describes a queue with n elements, and who waits for them.
func (d *depot) waitersOf(key, n string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	text := fmt.Sprintf("\n%s has %s elements", key, n)
	for who, w := range d.waiting {
		if strings.Contains(w.line, key) {
			text += fmt.Sprintf("; %s waits for %v: %s", who, time.Since(w.since), w.line)
		}
	}
	return text
}

// judge fails the test if something went wrong, and counts what BLMOVE has moved.
func (d *depot) judge(t *testing.T, addr string) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.problems {
		t.Error(p)
	}
	for e := range d.wanted {
		t.Errorf("%q is lost", e)
	}
	w := harness.DialWire(t, addr)
	moved := map[string]bool{}
	for i := range depotLists {
		for _, e := range poppedElements(w.Do(fmt.Sprintf("LRANGE {q:%d}moved 0 -1", i))) {
			if d.taken[e] == "" || moved[e] {
				t.Errorf("%q was moved twice, or to nobody", e)
			}
			moved[e] = true
		}
	}
}

// TestQueuesFirstCome: clients that wait for one key are served in their order, whatever other keys some of them
// name, however fast one push follows the other. A round counts if it takes less time than a claim keeps its turn.
func TestQueuesFirstCome(t *testing.T) {
	t.Parallel()
	c := harness.StartCluster(t, 3, 2)
	s := server{addr: c.Proxy(0).Addr, nodes: c.ByRole("node")}
	harness.AwaitLevel(t, s.addr)
	harness.AwaitLevel(t, c.Proxy(1).Addr)
	admin, other := harness.DialWire(t, s.addr), harness.DialWire(t, c.Proxy(1).Addr)
	const clients = 12
	rounds, counted := 10, 0
	if testing.Short() {
		rounds = 5
	}
	for round := range rounds {
		var waiting []*harness.Wire
		var lines []string
		for i := range clients {
			line := "BLPOP q1 0"
			if i%3 == 0 {
				line = "BLPOP p2 q1 r3 0"
			}
			lines = append(lines, line)
			waiting = append(waiting, waiter(t, s, admin, i, line))
			s.wantStanding(t, lines...)
		}
		begun, wrong := time.Now(), ""
		for i := range clients {
			other.Send(fmt.Appendf(nil, "RPUSH q1 %d\r\n", i))
		}
		for i, w := range waiting {
			other.Next()
			if got, want := string(w.Next()), fmt.Sprintf("*2\r\n$2\r\nq1\r\n$%d\r\n%d\r\n", len(strconv.Itoa(i)), i); got != want {
				wrong += fmt.Sprintf("; client %d gets %q, want %q", i, got, want)
			}
			w.Conn.Close()
		}
		if time.Since(begun) >= member.ClaimTurn {
			continue
		}
		if counted++; wrong != "" {
			if why := gaveUp(t, c.Members); why != "" { // who waited there stands behind others elsewhere
				t.Skipf("a node was given up, so this does not count: %s", why)
			}
			t.Errorf("round %d%s", round, wrong)
		}
	}
	if counted == 0 {
		t.Skip("the machine is too slow: no round counts")
	}
	t.Logf("%d of %d rounds count", counted, rounds)
}
