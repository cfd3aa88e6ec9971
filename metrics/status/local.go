package status

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/figures"
	"github.com/dunlin-cache/dunlin/node"
	"github.com/dunlin-cache/dunlin/proxy"
	"github.com/dunlin-cache/dunlin/ring"
)

// gatherPause is the least time between two visits to the members: loops are visited at most twenty
// times a second, however many readers ask.
const gatherPause = 50 * time.Millisecond

// shownSlow is how many requests of its slow log a node shows.
const shownSlow = 10

// shownHot is how many hot keys a node shows.
const shownHot = 10

// View is what a member knows about its cluster.
type View interface {
	Table() *ring.Table // immutable; nil: none yet
	Members() []ring.Member
}

// Source describes a member of this process.
type Source struct {
	ID   string
	Boot int64  // ring.Member.Boot
	Addr string // as advertised
	View View
	// NotReady returns why the member is not ready, as far as its agent knows, or ""; nil: nothing
	// is known.
	NotReady func() string
}

// Node is the part of a *node.Node that Local reads.
type Node interface {
	Stats() (node.Stats, error)
	Serving() bool
	Slow(most int) []figures.SlowRequest
}

// Proxy is the part of a *proxy.Proxy that Local reads.
type Proxy interface {
	Stats() (proxy.Stats, error)
	Ready() bool
}

// Detail is what a member shows, besides its figures, only to readers of its own process.
type Detail struct {
	Memory  []MemoryClass
	Big     []figures.KeyFigure
	Slow    []figures.SlowRequest
	History []Sample // oldest first, one every SampleEvery

	latency [command.NumFamilies]figures.Durations
}

// MemoryClass is how much memory a node uses for one purpose.
type MemoryClass struct {
	Class string `json:"class"`
	Bytes int64  `json:"bytes"`
}

// member is a Source and the functions that read its figures.
type member struct {
	source  Source
	ready   func() bool
	figures func() (Member, Detail, error) // what only the member itself knows
	started time.Time                      // when it was added
	past    history
}

// isReady reports whether clients should connect to the member.
func (m *member) isReady() bool { return m.ready() && m.lacks() == "" }

// lacks returns why the member's agent considers the member not ready, or "".
func (m *member) lacks() string {
	if m.source.NotReady == nil {
		return ""
	}
	return m.source.NotReady()
}

// Snapshot has the figures of this process's members at one time. It is shared: only read it.
type Snapshot struct {
	Status
	Details []Detail    // of Status.Members, by index
	Table   *ring.Table // described by Status.Cluster; nil: none yet
}

// Local has the members of this process. Any goroutine may call its methods.
type Local struct {
	version, cluster string
	log              *slog.Logger

	mu      sync.Mutex
	members []*member

	turn  chan struct{} // full while a goroutine makes last
	began time.Time     // when the visit that made last began
	last  *Snapshot
}

// NewLocal returns a Local without members, for a process of the given version and cluster.
func NewLocal(version, cluster string, log *slog.Logger) *Local {
	return &Local{version: version, cluster: cluster, log: log, turn: make(chan struct{}, 1)}
}

// AddNode adds a node.
func (l *Local) AddNode(s Source, n Node) {
	l.add(&member{source: s, ready: n.Serving, figures: func() (Member, Detail, error) {
		stats, err := n.Stats()
		d := Detail{latency: stats.Latency, Big: stats.BigKeys, Slow: n.Slow(shownSlow)}
		stats.MemoryClasses(func(class string, bytes int64) { d.Memory = append(d.Memory, MemoryClass{class, bytes}) })
		return Member{
			Role:       ring.RoleNode.String(),
			Fenced:     stats.Fenced,
			Keys:       stats.Keys,
			MemoryUsed: stats.Engine.Used,
			MemoryMax:  stats.Engine.Max,
			Hits:       stats.Hits,
			Misses:     stats.Misses,
			Clients:    stats.Clients,
			Waiting:    stats.Blocked,
			Commands:   stats.OfClients,
			HotKeys:    hotKeys(stats.HotKeys),
			Pinned:     pinned(stats.Pinned),
		}, d, err
	}})
}

// AddProxy adds a proxy.
func (l *Local) AddProxy(s Source, p Proxy) {
	l.add(&member{source: s, ready: p.Ready, figures: func() (Member, Detail, error) {
		stats, err := p.Stats()
		return Member{
			Role:    ring.RoleProxy.String(),
			Clients: stats.Clients,
			Waiting: stats.Blocked, Subscriptions: int64(stats.Subscriptions),
			Commands: stats.CommandsTotal(),
		}, Detail{latency: stats.Latency}, err
	}})
}

func pinned(all []node.PinnedStats) (list []Pinned) {
	for _, p := range all {
		list = append(list, Pinned(p))
	}
	return list
}

func hotKeys(top []figures.KeyFigure) (list []HotKey) {
	for _, k := range top[:min(len(top), shownHot)] {
		list = append(list, HotKey{k.Key, k.Database, k.N})
	}
	return list
}

func (l *Local) add(m *member) {
	m.started = time.Now()
	m.past.begin(m.started)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.members = append(l.members, m)
}

// list returns the present members; the slice does not change afterwards.
func (l *Local) list() []*member {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.members[:len(l.members):len(l.members)]
}

// NotReady names the members that cannot serve, or returns "".
func (l *Local) NotReady() string {
	members := l.list()
	if len(members) == 0 {
		return "starting"
	}
	var missing []string
	for _, m := range members {
		if why := m.lacks(); why != "" {
			missing = append(missing, m.source.ID+" is not ready: "+why)
		} else if !m.ready() {
			missing = append(missing, m.source.ID+" is not ready")
		}
	}
	return strings.Join(missing, "\n")
}

// Gather returns the members' figures. Callers that arrive during one visit to the members share
// the next visit, which begins after their calls. So a script that reads, acts and reads again sees
// its effect, which a cache would hide.
func (l *Local) Gather() *Snapshot {
	called := time.Now()
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	if l.last == nil || !l.began.After(called) {
		time.Sleep(time.Until(l.began.Add(gatherPause)))
		l.began = time.Now()
		l.last = l.gather()
	}
	return l.last
}

func (l *Local) gather() *Snapshot {
	s := &Snapshot{Status: Status{
		Version: l.version,
		Cluster: Cluster{Name: l.cluster, Partitions: ring.Partitions, Peers: []Peer{}},
		Members: []Member{},
	}}
	for i, m := range l.list() {
		if i == 0 {
			s.Cluster, s.Table = cluster(l.cluster, m.source.View), m.source.View.Table()
		}
		f, d, err := m.figures()
		if err != nil {
			// Its figures are unknown, but the member is here: show it as not ready.
			l.log.Warn("cannot read figures", "member", m.source.ID, "err", err)
		}
		d.History = m.past.list()
		s.Members, s.Details = append(s.Members, m.complete(f, err == nil)), append(s.Details, d)
	}
	return s
}

// complete adds to f what is known without asking the member.
func (m *member) complete(f Member, answered bool) Member {
	f.ID, f.Boot, f.Addr = m.source.ID, m.source.Boot, m.source.Addr
	f.Ready = answered && m.isReady()
	f.UptimeSeconds = time.Since(m.started).Seconds()
	if answered {
		m.past.recent(time.Now(), &f)
	}
	if t := m.source.View.Table(); t != nil {
		parts := sharesOf(t)
		f.Epoch = t.Epoch
		f.Partitions, f.Follows = parts.of(f.ID, f.Boot)
	}
	return f
}

// KeepHistory samples the members until ctx ends, so that a page shows the last minutes as soon as
// it opens.
func (l *Local) KeepHistory(ctx context.Context) {
	tick := time.NewTicker(SampleEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			for _, m := range l.list() {
				if f, d, err := m.figures(); err == nil {
					m.past.add(now, &f, &d)
				}
			}
		}
	}
}

// ServeHTTP answers GET /api/status with the Status. With ?members it leaves the cluster out,
// because a reader that asks every member for its figures needs the cluster only once.
func (l *Local) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s := l.Gather().Status
	if r.URL.Query().Has("members") {
		s.Cluster = Cluster{Name: s.Cluster.Name, Peers: []Peer{}}
	}
	SendJSON(w, "  ", s)
}

// SendJSON answers with what, a value that can always be encoded. No cache may keep the answer.
func SendJSON(w http.ResponseWriter, indent string, what any) {
	var body bytes.Buffer
	e := json.NewEncoder(&body)
	e.SetIndent("", indent)
	if err := e.Encode(what); err != nil {
		panic("BUG: " + err.Error())
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(body.Bytes()) // an error means that the client is gone
}
