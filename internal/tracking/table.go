package tracking

import (
	"encoding/binary"
	"slices"

	"github.com/cespare/xxhash/v2"
)

const (
	// MaxKeys is how many keys of one command are tracked. The client of a longer one is told to forget all.
	MaxKeys = 1024
	// MaxCopies is how many copies a Table knows, at most.
	MaxCopies = 1 << 20
	// MaxHeld is how many bytes of invalidations wait for a client's replies. With more, the client forgets all.
	MaxHeld = 64 << 10
	// copySize is what a copy takes in the Go heap beside twice its name, in bytes.
	copySize = 160
	// jobSize is what something to be told takes there, beside a name.
	jobSize = 96
	// prefixSize is what a prefix takes for a client, beside twice its bytes.
	prefixSize = 256
	// maxQueued is how much is queued, at most: a client that is to be told counts, and so do 64 bytes of a key's name.
	// With more, all clients forget everything.
	maxQueued = 64 << 10
	// chargeAtOnce is how many bytes a Table charges at a time, for copies and for what it has to tell.
	chargeAtOnce = 64 << 10
)

// Hash is by what members name a key that has changed. Keys may share one.
func Hash(key []byte) uint64 { return xxhash.Sum64(key) }

// Sink is the connection behind a Client. It orders what it is told behind the replies that it concerns.
type Sink interface {
	// Invalidate tells the client to forget a key.
	Invalidate(key string)
	// Flush tells the client to forget all keys.
	Flush()
}

// Heap is what a Table charges.
type Heap interface {
	Charge(bytes int64) bool
	Refund(bytes int64)
}

// Client is one connection that tracks.
type Client struct {
	sink   Sink // nil: it has gone
	id     uint64
	noLoop bool
	reads  bool             // it has read something since it was told to forget all
	waits  bool             // it is in a job that tells it to forget all
	era    uint64           // of copies: older ones are gone
	copies map[string]*kept // by key

	prefixes []string // not nil: it follows these and has no copies
	at       int      // in Table.clients
}

// kept is what one client has of one key.
type kept struct {
	hash       uint64
	key        string
	client     *Client
	prev, next *kept // of those with the same hash
}

// Table is what a loop knows of its clients. The zero value is empty.
type Table struct {
	Heap      Heap   // nil: it charges nobody
	Limit     int    // of copies; 0: MaxCopies
	Told      uint64 // invalidations
	Overflows uint64 // times that more was to be told than is queued, so that all clients forgot everything

	byHash   map[uint64]*kept
	size     int    // copies
	ofCopies int64  // bytes
	ofJobs   int64  // bytes
	charged  int64  // bytes, for both: a little more
	era      uint64 // how often all were dropped
	clients  []*Client

	prefixes map[string][]*Client // jobs have the same lists: who leaves gets them another
	lengths  []int                // of the prefixes, each once, ascending
	leaving  []*Client
	jobs     []job // what Go does
	queued   int   // the costs of these
	whole    bool  // the first of them tells all clients to forget all, and has told none yet
}

// job is what is to be told: a hash, a key by its prefixes, or all.
type job struct {
	what  what
	actor uint64
	hash  uint64
	key   string
	all   []*Client // who is still to be told
	cost  int
}

// size is what the job takes in the Go heap, in bytes. The clients of a flush are counted with themselves.
func (j *job) size() int64 {
	if j.what == flushed {
		return 0
	}
	return jobSize + int64(len(j.key))
}

type what uint8

const (
	gone what = iota
	changed
	flushed
)

// Join adds a client, which has no copies yet.
func (t *Table) Join(sink Sink, id uint64) *Client {
	c := &Client{sink: sink, id: id, era: t.era, at: len(t.clients)}
	t.clients = append(t.clients, c)
	t.whole = false
	return c
}

// Set says what the client wants: noLoop, no word of what it changes itself; prefixes, word of all keys that begin
// with one of these, which do not overlap.
func (t *Table) Set(c *Client, noLoop bool, prefixes []string) {
	c.noLoop = noLoop
	t.unfollow(c, prefixes)
	for _, p := range prefixes {
		if slices.Contains(c.prefixes, p) {
			continue
		}
		if t.prefixes == nil {
			t.prefixes = make(map[string][]*Client)
		}
		t.prefixes[p] = append(t.prefixes[p], c)
		t.addLength(len(p))
	}
	c.prefixes = prefixes
}

func (t *Table) addLength(n int) {
	if i, found := slices.BinarySearch(t.lengths, n); !found {
		t.lengths = slices.Insert(t.lengths, i, n)
	}
}

// Leave removes a client: it is told nothing more. Go forgets its copies. The last one takes everything along.
func (t *Table) Leave(c *Client) {
	if c.sink == nil {
		return
	}
	c.sink = nil
	last := len(t.clients) - 1
	t.clients[c.at] = t.clients[last]
	t.clients[c.at].at = c.at
	t.clients[last] = nil
	t.clients = t.clients[:last]
	t.unfollow(c, nil)
	switch {
	case len(t.clients) == 0: // nobody is to be told
		t.Flush()
		t.refund(t.charged)
	case len(c.copies) > 0 && c.era == t.era:
		t.leaving = append(t.leaving, c)
	}
}

// unfollow ends what a client follows, but for some prefixes.
func (t *Table) unfollow(c *Client, keep []string) {
	ended := false
	for _, p := range c.prefixes {
		if slices.Contains(keep, p) {
			continue
		}
		rest := slices.DeleteFunc(slices.Clone(t.prefixes[p]), func(d *Client) bool { return d == c })
		if t.prefixes[p] = rest; len(rest) == 0 {
			delete(t.prefixes, p)
			ended = true
		}
	}
	if ended {
		t.lengths = t.lengths[:0]
		for p := range t.prefixes {
			t.addLength(len(p))
		}
	}
}

// Clients returns how many clients there are.
func (t *Table) Clients() int { return len(t.clients) }

// Copies returns how many copies there are.
func (t *Table) Copies() int { return t.size }

// Prefixes returns the prefixes that clients follow.
func (t *Table) Prefixes() map[string][]*Client { return t.prefixes }

// Reads notes that the client is about to read something that is not tracked key by key.
func (c *Client) Reads() { c.reads = true }

// Add notes that the client is about to read a key. It reports false if there is no memory for that. It may
// queue something.
func (t *Table) Add(c *Client, key []byte) (ok bool) {
	c.reads = true
	t.renew(c)
	if c.copies[string(key)] != nil {
		return true
	}
	limit := t.Limit
	if limit == 0 {
		limit = MaxCopies
	}
	if t.size >= limit {
		t.dropAny()
		t.renew(c) // that may have dropped all
	}
	if !t.take(&t.ofCopies, copyCost(len(key))) {
		return false
	}
	x := &kept{hash: Hash(key), key: string(key), client: c}
	if c.copies == nil {
		c.copies = make(map[string]*kept)
	}
	if t.byHash == nil {
		t.byHash = make(map[uint64]*kept)
	}
	c.copies[x.key] = x
	if x.next = t.byHash[x.hash]; x.next != nil {
		x.next.prev = x
	}
	t.byHash[x.hash] = x
	t.size++
	return true
}

// renew forgets the client's copies if all were dropped.
func (t *Table) renew(c *Client) {
	if c.era != t.era {
		c.era, c.copies = t.era, nil
	}
}

func copyCost(key int) int64 { return copySize + 2*int64(key) }

// dropAny drops any copy, and queues that its key has changed.
func (t *Table) dropAny() {
	for _, x := range t.byHash { // maps begin anywhere
		t.remove(x)
		t.queue(job{what: changed, key: x.key, all: []*Client{x.client}})
		return
	}
}

// next returns a copy with the hash whose client is to be told, nil if there is none. That of an actor which wants no
// word of what it does itself stays: it may have read the key again since, and marked it for the next change.
func (t *Table) next(hash, actor uint64) *kept {
	x := t.byHash[hash]
	if x != nil && x.client.sink != nil && x.client.isDeafTo(actor) {
		x = x.next // if that is the same client's, the two keys share a hash, and it is told too much
	}
	return x
}

// isDeafTo reports whether the client wants no word of what the actor does: that is the client itself.
func (c *Client) isDeafTo(actor uint64) bool { return c.noLoop && c.id == actor }

func (t *Table) send(c *Client, key string) {
	if c.sink == nil {
		return
	}
	t.Told++
	c.sink.Invalidate(key)
}

func (t *Table) remove(x *kept) {
	if x.prev != nil {
		x.prev.next = x.next
	} else if x.next != nil {
		t.byHash[x.hash] = x.next
	} else {
		delete(t.byHash, x.hash)
	}
	if x.next != nil {
		x.next.prev = x.prev
	}
	delete(x.client.copies, x.key)
	t.size--
	t.give(&t.ofCopies, copyCost(len(x.key)))
}

// take charges so many bytes more of copies or jobs. It reports false, and charges nothing, if there is no memory.
func (t *Table) take(of *int64, size int64) (ok bool) {
	if lacks := t.ofCopies + t.ofJobs + size - t.charged; lacks > 0 {
		more := max(lacks, chargeAtOnce)
		if t.Heap != nil && !t.Heap.Charge(more) {
			return false
		}
		t.charged += more
	}
	*of += size
	return true
}

// give is the opposite of take. Some room stays charged, so that there are jobs without memory too.
func (t *Table) give(of *int64, size int64) {
	*of -= size
	if idle := t.charged - t.ofCopies - t.ofJobs; idle > 2*chargeAtOnce {
		t.refund(idle - chargeAtOnce)
	}
}

func (t *Table) refund(bytes int64) {
	t.charged -= bytes
	if t.Heap != nil && bytes > 0 {
		t.Heap.Refund(bytes)
	}
}

// Gone queues that a key with the hash has changed.
func (t *Table) Gone(hash, actor uint64) {
	if t.byHash[hash] != nil {
		t.queue(job{what: gone, hash: hash, actor: actor})
	}
}

// Changed queues that a key has changed, for those that follow its prefixes.
func (t *Table) Changed(key string, actor uint64) {
	for _, n := range t.lengths {
		if n > len(key) {
			return
		}
		if all := t.prefixes[key[:n]]; len(all) > 0 {
			t.queue(job{what: changed, key: key, actor: actor, all: all})
		}
	}
}

// queue adds a job, or has all clients forget everything if there would be too much to do.
func (t *Table) queue(j job) {
	j.cost = 1 + len(j.all) + len(j.key)/64
	if t.queued+j.cost > max(maxQueued, 4*len(t.clients)) || !t.take(&t.ofJobs, j.size()) {
		t.Overflows++
		t.Flush()
		return
	}
	t.queued += j.cost
	t.jobs = append(t.jobs, j)
}

// Flush queues that all clients are to forget all, as far as they follow prefixes, or have read anything since they
// were told so. Who waits for that already is told first. What else is queued is in it.
func (t *Table) Flush() {
	t.dropCopies()
	t.queued = 0
	t.give(&t.ofJobs, t.ofJobs)
	switch {
	case len(t.clients) == 0:
		t.jobs = nil
	case t.whole:
		t.jobs = t.jobs[:1:1]
	default:
		all := make([]*Client, 0, len(t.clients))
		for _, j := range t.jobs {
			if j.what == flushed {
				all = append(all, j.all...)
			}
		}
		all = slices.DeleteFunc(all, func(c *Client) bool { return c.sink == nil })
		t.jobs = []job{{what: flushed, all: t.appendOthers(all, func(*Client) bool { return true })}}
		t.whole = true
	}
}

// FlushCopies is Flush for the clients that follow no prefixes: all marks may be gone.
func (t *Table) FlushCopies() {
	t.dropCopies()
	t.flushOthers(func(c *Client) bool { return len(c.prefixes) == 0 })
}

// FlushFollowers is Flush for the clients that follow prefixes.
func (t *Table) FlushFollowers() {
	t.flushOthers(func(c *Client) bool { return len(c.prefixes) > 0 })
}

// flushOthers queues that those clients are to forget all that do not wait for that already.
func (t *Table) flushOthers(of func(*Client) bool) {
	if all := t.appendOthers(nil, of); len(all) > 0 {
		t.jobs = append(t.jobs, job{what: flushed, all: all})
	}
}

// appendOthers appends the clients that do not wait already to be told to forget all, and now do.
func (t *Table) appendOthers(all []*Client, of func(*Client) bool) []*Client {
	for _, c := range t.clients {
		if !c.waits && of(c) {
			c.waits = true
			all = append(all, c)
		}
	}
	return all
}

// dropCopies drops all copies. What is queued of them finds none.
func (t *Table) dropCopies() {
	t.byHash, t.size, t.leaving = nil, 0, nil
	t.era++
	t.give(&t.ofCopies, t.ofCopies)
}

// Busy reports whether Go has something to do.
func (t *Table) Busy() bool { return len(t.jobs) > 0 || len(t.leaving) > 0 }

// Go tells what is queued, in so many steps at most, and returns how many are left.
func (t *Table) Go(steps int) (left int) {
	for ; steps > 0 && len(t.jobs) > 0; steps-- {
		switch j := &t.jobs[0]; {
		case j.what == gone:
			if x := t.next(j.hash, j.actor); x != nil {
				t.remove(x)
				t.send(x.client, x.key)
				continue
			}
		case len(j.all) > 0:
			c := j.all[0]
			j.all = j.all[1:]
			if j.what == flushed {
				t.forget(c)
			} else if !c.isDeafTo(j.actor) {
				t.send(c, j.key)
			}
			continue
		}
		t.queued -= t.jobs[0].cost
		t.give(&t.ofJobs, t.jobs[0].size())
		t.jobs[0] = job{}
		if t.jobs = t.jobs[1:]; len(t.jobs) == 0 {
			t.jobs = nil
		}
	}
	for ; steps > 0 && len(t.leaving) > 0; steps-- {
		c := t.leaving[0]
		if len(c.copies) == 0 || c.era != t.era {
			t.leaving[0] = nil
			t.leaving = t.leaving[1:]
			continue
		}
		for _, x := range c.copies {
			t.remove(x)
			break
		}
	}
	return steps
}

// forget has a client forget all, if it may know anything.
func (t *Table) forget(c *Client) {
	c.waits, t.whole = false, false
	if c.sink == nil || !c.reads && len(c.prefixes) == 0 {
		return
	}
	c.reads = false
	t.renew(c)
	t.Told++
	c.sink.Flush()
}

// PrefixCost is what a prefix takes for a client that follows it, in bytes.
func PrefixCost(prefix string) int { return prefixSize + 2*len(prefix) }

// PrefixesCost is PrefixCost of several.
func PrefixesCost(prefixes []string) (bytes int) {
	for _, p := range prefixes {
		bytes += PrefixCost(p)
	}
	return bytes
}

// Actor is by what members name one connection of a process. It is not 0.
func Actor(boot int64, id uint64) uint64 {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], uint64(boot))
	binary.LittleEndian.PutUint64(b[8:], id)
	return xxhash.Sum64(b[:]) | 1
}
