package proxy

import (
	"bytes"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/freeport"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// fakeNode is a node in a map: it speaks the pipe protocol as a real one does, and misbehaves on
// demand.
type fakeNode struct {
	t    testing.TB
	ln   net.Listener
	name string

	mu   sync.Mutex
	data map[string]string // by inDatabase
	at   uint8             // the database of the command at hand
	settings
	log     []string // commands executed, in order, as "NAME key", and "#3 NAME key" of another database than 0
	kinds   []string // of the pipes that were opened, in order
	conns   map[net.Conn]bool
	owns    func(p uint16) bool                // nil: everything
	refuse  func(key string) string            // a refusal instead of executing, "" to execute
	answer  func(args []string) (string, bool) // overrides the reply
	drip    chan struct{}                      // not nil: each byte of a reply waits for one value
	gate    chan struct{}                      // not nil: each command waits for one value
	latched map[net.Conn]map[uint16]bool       // partitions refused on a connection until RETRY
	tickets map[string]string                  // large replies by ticket; nil: it gives no tickets
	copies  int                                // number of copies that WAIT counts
	issued  int
	fetch   func(args []string) (string, bool) // overrides the reply to FETCH
	later   func(args []string) bool           // the command is answered later; nil: none is
	settles string                             // what $ is in a command that is answered later
	listen  func(args []string) member.Heard   // answers LISTEN; nil: it does not know that
	pushes  string                             // come once, behind the answer to LISTEN
	ahead   string                             // comes in front of what completes a command
	tokens  map[net.Conn]int
	pending []pending // answered later, in order
	stopped chan struct{}
}

// pending is a command that the fake node answers later.
type pending struct {
	c        net.Conn
	token    int
	args     []string
	database uint8
}

// inDatabase returns the name under which data has a key of a database.
func inDatabase(database uint8, key string) string {
	if database == 0 {
		return key
	}
	return fmt.Sprintf("#%d %s", database, key)
}

// note adds a command to the log.
func (n *fakeNode) note(command string) { n.log = append(n.log, inDatabase(n.at, command)) }

// complete pushes the reply to the i-th pending command; "" means what its execution gives.
func (n *fakeNode) complete(i int, reply string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	d := n.pending[i]
	n.pending = append(n.pending[:i:i], n.pending[i+1:]...)
	n.at = d.database
	switch {
	case reply != "":
	case d.args[0] == "DUNLIN":
		reply = n.each(d.args)
	default:
		reply = n.command(strings.ToUpper(d.args[0]), d.args)
	}
	if _, err := fmt.Fprintf(d.c, "%s>3\r\n+later\r\n:%d\r\n%s", n.ahead, d.token, reply); err != nil {
		n.t.Error(err)
	}
}

// postpone answers a command by a token.
func (n *fakeNode) postpone(c net.Conn, args []string) (reply string) {
	n.tokens[c]++
	n.pending = append(n.pending, pending{c, n.tokens[c], args, n.at})
	if slices.Contains(args, member.LastID) {
		return fmt.Sprintf("-DUNLINLATER %d %s\r\n", n.tokens[c], n.settles)
	}
	return fmt.Sprintf("-DUNLINLATER %d\r\n", n.tokens[c])
}

// waiting waits until that many commands are pending.
func (n *fakeNode) waiting(count int) {
	n.t.Helper()
	eventually(n.t, fmt.Sprintf("%d commands are answered later", count), func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		return len(n.pending) == count
	})
}

func newFakeNode(t testing.TB, name string) *fakeNode {
	t.Helper()
	port, err := freeport.Choose() // a test may close it: nobody else gets it then
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", freeport.Loopback(port))
	if err != nil {
		t.Fatal(err)
	}
	n := &fakeNode{t: t, ln: ln, name: name, data: map[string]string{}, conns: map[net.Conn]bool{},
		latched: map[net.Conn]map[uint16]bool{}, tokens: map[net.Conn]int{}, stopped: make(chan struct{})}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			n.mu.Lock()
			n.conns[c] = true
			n.mu.Unlock()
			select {
			case <-n.stopped: // cut may have been here before
				c.Close()
			default:
			}
			wg.Go(func() { n.serve(c) })
		}
	})
	t.Cleanup(func() {
		close(n.stopped)
		ln.Close()
		n.cut()
		wg.Wait()
	})
	return n
}

func (n *fakeNode) member() ring.Member {
	return ring.Member{ID: n.name, Boot: 1, State: ring.Serving, Addr: n.ln.Addr().String()}
}

// set changes the node's behaviour under its lock.
func (n *fakeNode) set(f func(n *fakeNode)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f(n)
}

// cut closes every connection.
func (n *fakeNode) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for c := range n.conns {
		c.Close()
	}
	n.conns = map[net.Conn]bool{}
}

func (n *fakeNode) executed() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]string(nil), n.log...)
}

func (n *fakeNode) serve(c net.Conn) {
	defer c.Close()
	var buf []byte
	var parser resp.Parser
	chunk := make([]byte, 64<<10)
	for {
		got, err := c.Read(chunk)
		if err != nil {
			return
		}
		buf = append(buf, chunk[:got]...)
		off := 0
		for {
			p, prefix, ok := member.CutPrefix(buf[off:])
			if !ok {
				n.t.Errorf("a request begins with %q", buf[off:off+2])
				return
			}
			if parser.Parse(buf[off+prefix:]) != resp.Done {
				break
			}
			var args []string
			for _, a := range parser.Args() {
				args = append(args, string(a))
			}
			off += prefix + parser.Len()
			reply, ok := n.execute(c, p.Database, args)
			if !ok {
				return
			}
			for len(reply) > 0 {
				piece := len(reply)
				n.mu.Lock()
				if n.drip != nil {
					piece = 1
				}
				drip := n.drip
				n.mu.Unlock()
				if drip != nil && args[0] != "DUNLIN" {
					select {
					case <-drip:
					case <-n.stopped:
					}
				}
				if _, err := c.Write([]byte(reply[:piece])); err != nil {
					return
				}
				reply = reply[piece:]
			}
		}
		if off > 0 { // else the parser goes on where it was
			parser.Reset()
			buf = append(buf[:0], buf[off:]...)
		}
	}
}

func bulk(s string) string { return string(resp.AppendBulkString(nil, s)) }

func (n *fakeNode) execute(c net.Conn, database uint8, args []string) (reply string, ok bool) {
	name := strings.ToUpper(args[0])
	if name == "DUNLIN" && args[1] != "EXEC" && args[1] != "WATCH" && args[1] != "CLAIM" && args[1] != "GATHER" {
		return n.internal(c, database, args)
	}
	n.mu.Lock()
	gate := n.gate
	n.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-n.stopped:
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.at = database
	if r := n.refusal(c, name, args); r != "" {
		return r, true
	}
	if n.later != nil && n.later(args) {
		return n.postpone(c, args), true
	}
	if n.answer != nil {
		if r, ok := n.answer(args); ok {
			return r, r != ""
		}
	}
	if reply = n.command(name, args); name == "DUNLIN" {
		reply = n.transaction(args)
	}
	if n.tickets != nil && len(reply) > ticketFrom {
		n.issued++
		n.tickets[strconv.Itoa(n.issued)] = reply
		reply = fmt.Sprintf("-DUNLINLARGE %d %d\r\n", n.issued, len(reply))
	}
	return reply, true
}

// transaction executes EXEC and WATCH. A key's version is its value.
func (n *fakeNode) transaction(args []string) string {
	if args[1] == "WATCH" {
		var versions []string
		for _, k := range args[2:] {
			versions = append(versions, n.get(k))
		}
		return array(versions)
	}
	watched, _ := strconv.Atoi(args[3])
	begun := n.at
	for rest := args[4:]; watched > 0; watched, rest = watched-1, rest[2:] {
		database, version, _ := member.CutWatched([]byte(rest[1]))
		if n.at = database; n.get(rest[0]) != string(version) {
			return "*-1\r\n"
		}
	}
	n.at = begun
	watched, _ = strconv.Atoi(args[3])
	var out strings.Builder
	fmt.Fprintf(&out, "*%d\r\n", len(args)-4-2*watched)
	for _, raw := range args[4+2*watched:] {
		var p resp.Parser
		p.Parse([]byte(raw))
		var inner []string
		for _, a := range p.Args() {
			inner = append(inner, string(a))
		}
		out.WriteString(n.command(strings.ToUpper(inner[0]), inner))
	}
	return out.String()
}

// ticketFrom is the least length of a reply for which the fake node gives a ticket.
const ticketFrom = 1000

func (n *fakeNode) piece(args []string) (string, bool) {
	if n.fetch != nil {
		if r, ok := n.fetch(args); ok {
			return r, r != ""
		}
	}
	reply, ok := n.tickets[args[2]]
	from, _ := strconv.Atoi(args[3])
	count, _ := strconv.Atoi(args[4])
	switch {
	case count == 0:
		delete(n.tickets, args[2])
		return bulk(""), true
	case !ok || from > len(reply):
		return "-ERR there is no such ticket\r\n", true
	}
	return bulk(reply[from:min(from+count, len(reply))]), true
}

func (n *fakeNode) refusal(c net.Conn, name string, args []string) string {
	step := 1
	if name == "MSET" {
		step = 2
	}
	last := len(args)
	first := 1
	switch name {
	case "SET", "GET", "INCR":
		last = 2
	case "DUNLIN":
		if first, last = 2, 3; args[1] == "GATHER" {
			first, last = 3, 4
		} else if args[1] == "EXEC" {
			var p resp.Parser
			k := args[4]
			if p.Parse([]byte(args[len(args)-1])) == resp.Done && len(p.Args()) > 1 {
				k = string(p.Args()[1])
			}
			args = []string{"", "", k}
		}
	}
	for i := first; i < last; i += step {
		p := ring.PartitionOf([]byte(args[i]))
		why := ""
		if n.latched[c][p] {
			why = "-DUNLINWAIT\r\n"
		} else if n.refuse != nil {
			why = n.refuse(args[i])
		}
		if why != "" {
			if n.latched[c] == nil {
				n.latched[c] = map[uint16]bool{}
			}
			for ; first < last; first += step { // all of the command's, like a node
				n.latched[c][ring.PartitionOf([]byte(args[first]))] = true
			}
			return why
		}
	}
	return ""
}

func (n *fakeNode) command(name string, args []string) string {
	if len(args) > 1 {
		n.note(name + " " + strings.Join(args[1:], " "))
	}
	in := func(key string) string { return inDatabase(n.at, key) }
	switch name {
	case "SELECT": // within EXEC
		at, _ := strconv.Atoi(args[1])
		n.at = uint8(at)
		return "+OK\r\n"
	case "PING":
		return "+PONG\r\n"
	case "GET":
		return n.get(args[1])
	case "SET":
		n.data[in(args[1])] = args[2]
		return "+OK\r\n"
	case "MSET":
		for i := 1; i < len(args); i += 2 {
			n.data[in(args[i])] = args[i+1]
		}
		return "+OK\r\n"
	case "MGET":
		var out strings.Builder
		fmt.Fprintf(&out, "*%d\r\n", len(args)-1)
		for _, k := range args[1:] {
			out.WriteString(n.get(k))
		}
		return out.String()
	case "DEL", "EXISTS":
		count := 0
		for _, k := range args[1:] {
			if _, ok := n.data[in(k)]; ok {
				count++
				if name == "DEL" {
					delete(n.data, in(k))
				}
			}
		}
		return ":" + strconv.Itoa(count) + "\r\n"
	case "INCR":
		i, _ := strconv.Atoi(n.data[in(args[1])])
		n.data[in(args[1])] = strconv.Itoa(i + 1)
		return ":" + n.data[in(args[1])] + "\r\n"
	}
	return "-ERR fake node does not know " + name + "\r\n"
}

func (n *fakeNode) get(key string) string {
	if v, ok := n.data[inDatabase(n.at, key)]; ok {
		return bulk(v)
	}
	return "$-1\r\n"
}

func (n *fakeNode) internal(c net.Conn, database uint8, args []string) (string, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.at = database
	switch strings.ToUpper(args[1]) {
	case "CHALLENGE":
		return bulk(strings.Repeat("n", 32)), true
	case "PIPE":
		n.kinds = append(n.kinds, args[4])
		if n.later != nil {
			return "+OK later\r\n", true
		}
		return "+OK\r\n", true
	case "CANCEL", "PASS":
		n.note(strings.Join(args[1:], " "))
		return "+OK\r\n", true
	case "RETURN":
		return n.answer(args)
	case "RETRY":
		delete(n.latched, c)
		return "+OK\r\n", true
	case "EACH":
		if n.later != nil && n.later(args) {
			return n.postpone(c, args), true
		}
		return n.each(args), true
	case "FETCH":
		return n.piece(args)
	case "LISTEN":
		if n.listen != nil {
			answer := string(member.AppendHeard(nil, n.listen(args[2:]))) + n.pushes
			n.pushes = ""
			return answer, true
		}
	}
	return "-ERR unknown\r\n", true
}

func (n *fakeNode) each(args []string) string {
	var wanted, covered ring.PartitionSet
	copy(wanted[:], args[2])
	for p := range ring.Partitions {
		if wanted.Has(uint16(p)) && (n.owns == nil || n.owns(uint16(p))) {
			covered.Add(uint16(p))
		}
	}
	var keys []string
	for name := range n.data {
		k, here := name, n.at == 0 && name[0] != '#'
		if n.at > 0 {
			k, here = strings.CutPrefix(name, inDatabase(n.at, ""))
		}
		if here && covered.Has(ring.PartitionOf([]byte(k))) {
			keys = append(keys, k)
		}
	}
	head := "*2\r\n" + bulk(string(covered[:]))
	switch strings.ToUpper(args[3]) {
	case "DBSIZE":
		return head + ":" + strconv.Itoa(len(keys)) + "\r\n"
	case "SLOWLOG":
		if strings.EqualFold(args[4], "LEN") {
			return head + ":0\r\n"
		}
		return head + array(nil)
	case "WAIT":
		return head + ":" + strconv.Itoa(n.copies) + "\r\n"
	case "FLUSHALL":
		n.data = map[string]string{}
		return head + "+OK\r\n"
	case "FLUSHDB":
		for _, k := range keys {
			delete(n.data, inDatabase(n.at, k))
		}
		return head + "+OK\r\n"
	case "RANDOMKEY":
		if len(keys) == 0 {
			return head + "*0\r\n"
		}
		return head + "*2\r\n:" + strconv.Itoa(len(keys)) + "\r\n" + bulk(keys[0])
	case "CLUSTER":
		return head + ":" + strconv.Itoa(len(keys)) + "\r\n"
	case "KEYS":
		return head + array(keys)
	case "CONFIG":
		reply := n.config(args[4:])
		if reply[0] == '-' {
			return reply
		}
		return head + reply
	case "SCAN":
		return head + "*2\r\n" + n.scan(keys, args)
	}
	return "-ERR fake node does not know EACH " + args[3] + "\r\n"
}

// config answers CONFIG GET with both settings. CONFIG SET, and the question whether the node would
// refuse it, is an error for the value "bad:" and the node's name.
func (n *fakeNode) config(args []string) string {
	if strings.EqualFold(args[0], "GET") {
		return array([]string{"maxmemory", n.memory, "maxmemory-policy", n.policy})
	}
	checks := args[1] == ""
	for i := 1; i < len(args); i += 2 {
		switch {
		case args[i+1] == "bad:"+n.name:
			return "-ERR CONFIG SET failed: bad\r\n"
		case checks:
		case strings.EqualFold(args[i], "maxmemory"):
			n.memory = args[i+1]
		default:
			n.policy = args[i+1]
		}
	}
	return "+OK\r\n"
}

// scan walks partition by partition and stops after the one in which COUNT was reached.
func (n *fakeNode) scan(keys []string, args []string) string {
	cursor, _ := strconv.ParseUint(args[4], 10, 64)
	count := 10
	if len(args) > 6 {
		count, _ = strconv.Atoi(args[6])
	}
	var found []string
	for p := member.Cursor(cursor).Partition(); p < ring.Partitions; p++ {
		for _, k := range keys {
			if int(ring.PartitionOf([]byte(k))) == p {
				found = append(found, k)
			}
		}
		if len(found) >= count && p+1 < ring.Partitions {
			return ":" + string(member.CursorAt(p+1, 0).Append(nil)) + "\r\n" + array(found)
		}
	}
	return ":-1\r\n" + array(found)
}

func array(items []string) string {
	var b bytes.Buffer
	b.WriteString("*" + strconv.Itoa(len(items)) + "\r\n")
	for _, s := range items {
		b.WriteString(bulk(s))
	}
	return b.String()
}
