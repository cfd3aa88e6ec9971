package soak

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// attack is what an attacking process is told, by an environment variable.
type attack struct {
	Behaviors              []string
	Clients                int // of each behavior
	Seed                   uint64
	Proxies, Nodes, Admins []string
	TLS                    string // a proxy that speaks TLS
	Password               string
}

const attackEnv = "DUNLIN_SOAK_ATTACK"

// TestMain makes a process that is told an attack carry it out, until it is killed.
func TestMain(m *testing.M) {
	text := os.Getenv(attackEnv)
	if text == "" {
		os.Exit(m.Run())
	}
	var a attack
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		panic(err)
	}
	leaveProcessors()
	a.run()
}

// begunLow says that this process has the lowest priority.
const begunLow = "DUNLIN_SOAK_LOW"

// leaveProcessors gives this process the lowest priority: the servers get the processors, as if an
// attack had its own. Only the thread that asks gets it, and threads that begin later inherit that
// of another one, so the process begins anew.
func leaveProcessors() {
	if os.Getenv(begunLow) != "" {
		return
	}
	runtime.LockOSThread()
	if err := syscall.Setpriority(syscall.PRIO_PROCESS, 0, lowestPriority); err != nil {
		panic(err)
	}
	panic(syscall.Exec(os.Args[0], os.Args, append(os.Environ(), begunLow+"=yes")))
}

// start starts the process that carries out the attack. The end function ends it, and returns what
// it found wrong.
func (a attack) start(t testing.TB) (end func() (wrong string)) {
	t.Helper()
	_, end = a.launch(t)
	return end
}

// launch is start. It returns the process, too.
func (a attack) launch(t testing.TB) (pid int, end func() (wrong string)) {
	t.Helper()
	text, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(harness.CleanEnviron(), attackEnv+"="+string(text))
	cmd.Stdout, cmd.Stderr = &out, &out
	harness.EndWithUs(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid, func() string {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		return out.String()
	}
}

// run lets every client repeat its behavior for ever.
func (a attack) run() {
	var all sync.WaitGroup
	for i, name := range a.Behaviors {
		for j := range a.Clients {
			h := &hostile{attack: a, number: j, rng: rand.New(rand.NewPCG(a.Seed, uint64(i*a.Clients+j)))}
			all.Go(func() {
				for {
					h.visit(behaviors[name])
				}
			})
		}
	}
	all.Wait()
}

const lowestPriority = 19

// hostile is one client of an attack. What goes wrong on its connections ends its visit and is no
// fault: it is there to be turned away.
type hostile struct {
	attack
	number int // of the clients with this behavior
	rng    *rand.Rand
	conns  []net.Conn // of this visit
}

// gone ends a visit.
type gone struct{}

const (
	// visitTime is how long a client waits for one reply, or stays where it says nothing.
	visitTime = 3 * time.Second
	// pauseTime is how long a client rests when it was turned away.
	pauseTime = 20 * time.Millisecond
)

func (h *hostile) visit(do func(*hostile)) {
	defer func() {
		for _, c := range h.conns {
			c.Close()
		}
		h.conns = h.conns[:0]
		if r := recover(); r != nil {
			if _, ok := r.(gone); !ok {
				panic(r)
			}
			time.Sleep(pauseTime)
		}
	}()
	do(h)
}

// unlessGone does what a second goroutine of a visit does: it ends where a visit would.
func unlessGone(do func()) {
	defer func() {
		if r := recover(); r != nil && r != (gone{}) {
			panic(r)
		}
	}()
	do()
}

// one returns one of some addresses.
func (h *hostile) one(of []string) string { return of[h.rng.IntN(len(of))] }

// anyone returns the address of a proxy or a node.
func (h *hostile) anyone() string { return h.one([]string{h.one(h.Proxies), h.one(h.Nodes)}) }

// dial opens a connection without a word.
func (h *hostile) dial(addr string) *peer {
	c, err := net.DialTimeout("tcp", addr, visitTime)
	if err != nil {
		panic(gone{})
	}
	h.conns = append(h.conns, c)
	return &peer{link: &harness.Link{Conn: c}, conn: c}
}

// login opens a connection of a client that knows the password.
func (h *hostile) login(addr string) *peer {
	p := h.dial(addr)
	if h.Password != "" {
		p.ask("AUTH", h.Password)
	}
	return p
}

// peer is one connection of a hostile client.
type peer struct {
	link *harness.Link
	conn net.Conn
}

// say sends bytes as they are.
func (p *peer) say(b []byte) {
	_ = p.conn.SetWriteDeadline(time.Now().Add(visitTime))
	if _, err := p.conn.Write(b); err != nil {
		panic(gone{})
	}
}

// send sends a request and waits for nothing.
func (p *peer) send(args ...string) { p.say(request(args...)) }

// ask sends a request and returns the reply.
func (p *peer) ask(args ...string) string {
	p.send(args...)
	return p.hear()
}

// hear returns the next reply.
func (p *peer) hear() string {
	reply, err := p.link.Receive(time.Now().Add(visitTime))
	if err != nil {
		panic(gone{})
	}
	return string(reply)
}

// skip reads n replies.
func (p *peer) skip(n int) {
	for range n {
		p.hear()
	}
}

// want reports a reply that cannot be: the parent process fails then. An error always can be.
func (p *peer) want(got, want string) {
	if got != want && !strings.HasPrefix(got, "-") {
		fmt.Printf("a hostile client is answered %.60q, want %.60q\n", got, want)
	}
}

func request(args ...string) []byte {
	all := make([][]byte, len(args))
	for i, a := range args {
		all[i] = []byte(a)
	}
	return resp.AppendRequest(nil, all...)
}

// requests has those that many has made.
var requests sync.Map

// many returns a request of some words and then n more, which word returns. The words must follow
// from the first ones and the number: a request is made once, so that it costs the client little.
func many(n int, word func(i int) string, first ...string) []byte {
	name := fmt.Sprint(n, first)
	if b, ok := requests.Load(name); ok {
		return b.([]byte)
	}
	b := makeMany(n, word, first)
	requests.Store(name, b)
	return b
}

func makeMany(n int, word func(i int) string, first []string) []byte {
	b := append([]byte("*"), strconv.Itoa(len(first)+n)+"\r\n"...)
	for _, w := range first {
		b = resp.AppendBulk(b, []byte(w))
	}
	for i := range n {
		b = resp.AppendBulk(b, []byte(word(i)))
	}
	return b
}

// same is a word for many that is always the same.
func same(word string) func(int) string { return func(int) string { return word } }

// numbered is a word for many that counts up.
func numbered(word string) func(int) string {
	return func(i int) string { return word + strconv.Itoa(i) }
}
