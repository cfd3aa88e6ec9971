package metrics

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/figures"
	"github.com/dunlin-cache/dunlin/ring"
)

// Live is what the page draws.
type Live struct {
	Version   string     `json:"version"`
	UnixMilli int64      `json:"unix_milli"`       // now, by this machine's clock
	Cluster   Cluster    `json:"cluster"`          // its members are in Rows
	Alive     int        `json:"alive"`            // how many those are
	Rows      []Row      `json:"rows"`             // by role, then id
	Table     string     `json:"table"`            // its name; "": there is none
	Nodes     []LiveNode `json:"nodes"`            // of the table
	Owners    []int      `json:"owners,omitempty"` // by partition, indexes into Nodes; left out if the reader has this table's
	Moves     []LiveMove `json:"moves"`
	Hot       []NodeKey  `json:"hot"`  // of all nodes
	Here      []LiveHere `json:"here"` // the members of this process
}

// Row is a member: what others see of it, and what it says itself.
type Row struct {
	Peer
	Here    bool    `json:"here"`             // in this process
	Figures *Member `json:"figures"`          // null: it has not told them
	Remark  string  `json:"remark,omitempty"` // what is wrong with it
	Error   string  `json:"error,omitempty"`  // why its figures are not known
}

// LiveNode is a node of the table, alive or not.
type LiveNode struct {
	ID    string `json:"id"`
	Alive bool   `json:"alive"`
}

// LiveMove is a partition on its way.
type LiveMove struct {
	Partition int `json:"partition"`
	From      int `json:"from"` // indexes into Nodes
	To        int `json:"to"`
}

// LiveHere is what only a member's own process shows of it.
type LiveHere struct {
	ID        string      `json:"id"`
	Role      string      `json:"role"`
	MemoryMax int64       `json:"memory_max_bytes"`
	Memory    []LiveShare `json:"memory"`
	Big       []LiveKey   `json:"big"`
	Slow      []LiveSlow  `json:"slow"`
	History   []Sample    `json:"history"` // the oldest first, a Sample every sampleEvery
}

// LiveShare is memory by its class.
type LiveShare struct {
	Class string `json:"class"`
	Bytes int64  `json:"bytes"`
}

// LiveKey is a key that stands out by its size.
type LiveKey struct {
	Key   string `json:"key"`
	Bytes int64  `json:"bytes"`
}

// LiveSlow is a request of the slow log, of which only the first words are shown.
type LiveSlow struct {
	UnixMilli int64    `json:"unix_milli"`
	Micros    int64    `json:"micros"`
	Words     []string `json:"words"`
	More      int      `json:"more"`
	Client    string   `json:"client"`
}

// detail is what a member tells besides its figures.
type detail struct {
	latency [command.NumFamilies]figures.Durations
	memory  []LiveShare
	big     []figures.KeyFigure
	slow    []figures.SlowRequest
}

const (
	shownHot  = 10
	shownSlow = 10
)

// gone is the state of a node that the table has and gossip no longer.
const gone = "gone"

// liveView is a Live, encoded when first asked for: whole, without the owners, or as a page.
type liveView struct {
	table       string
	whole, rest func() []byte
	page        func() ([]byte, error)
}

func (a *Admin) viewLive() *liveView {
	l := a.live()
	rest := l
	rest.Owners = nil
	return &liveView{
		table: l.Table,
		whole: sync.OnceValue(func() []byte { return encode("", l) }),
		rest:  sync.OnceValue(func() []byte { return encode("", rest) }),
		page: sync.OnceValues(func() ([]byte, error) {
			var body bytes.Buffer
			err := pageTemplate.Execute(&body, l)
			return body.Bytes(), err
		}),
	}
}

// live gathers what the page draws.
func (a *Admin) live() Live {
	l := Live{
		Version: a.opt.Version, UnixMilli: time.Now().UnixMilli(),
		Nodes: []LiveNode{}, Moves: []LiveMove{}, Here: []LiveHere{},
	}
	members := a.list()
	s, details := a.gather(members)
	for i := range details {
		l.Here = append(l.Here, details[i].shown(&s.Members[i], members[i].past.list()))
	}
	l.addRows(&s, a.others(&s))
	if len(members) > 0 {
		if t := members[0].source.View.Table(); t != nil {
			l.addTable(t)
		}
	}
	slices.SortFunc(l.Rows, func(a, b Row) int { return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.ID, b.ID)) })
	l.Cluster = s.Cluster
	l.Cluster.Peers = []Peer{}
	return l
}

// addRows adds the alive members. r, which may be nil, has what they said last.
func (l *Live) addRows(s *Status, r *Report) {
	figures, reasons, here := map[life]*Member{}, map[life]string{}, map[life]bool{}
	if r != nil {
		for i := range r.Members {
			figures[r.Members[i].life()] = &r.Members[i]
		}
		for _, u := range r.Unreachable {
			reasons[u.life()] = u.Error
		}
	}
	for i := range s.Members {
		figures[s.Members[i].life()] = &s.Members[i]
		here[s.Members[i].life()] = true
	}
	l.Alive, l.Rows = len(s.Cluster.Peers), []Row{}
	var known []Member
	for _, p := range s.Cluster.Peers {
		row := Row{Peer: p, Here: here[p.life()], Figures: figures[p.life()], Error: reasons[p.life()]}
		row.Remark = row.remark()
		l.Rows = append(l.Rows, row)
		if row.Figures != nil {
			known = append(known, *row.Figures)
		}
	}
	l.Hot = Hottest(known, shownHot)
}

func (r *Row) remark() string {
	switch {
	case r.Figures == nil && r.Error != "" && r.Admin != "":
		return "no answer"
	case r.Figures == nil: // it was not asked yet, or cannot be
	case r.Figures.Fenced:
		return "fenced"
	case !r.Figures.Ready:
		return "not ready"
	}
	return ""
}

func (l *Live) addTable(t *ring.Table) {
	alive, listed := map[life]bool{}, map[string]bool{}
	for i := range l.Rows {
		alive[l.Rows[i].life()] = true
		listed[l.Rows[i].ID] = true
	}
	parts := sharesOf(t)
	for _, n := range t.Nodes {
		l.Nodes = append(l.Nodes, LiveNode{n.ID, alive[life{n.ID, n.Boot}]})
		if !listed[n.ID] {
			n.Admin = "" // nobody answers there
			l.Rows = append(l.Rows, Row{Peer: parts.peer(n, gone)})
		}
	}
	for _, m := range t.Moves {
		l.Moves = append(l.Moves, LiveMove{int(m.Partition), int(m.From), int(m.To)})
	}
	// An epoch alone does not name a table: a cluster that was started anew counts from 1.
	l.Table = fmt.Sprint(t.Epoch, " ", t.Issuer)
	for _, owner := range t.Owner {
		l.Owners = append(l.Owners, int(owner))
	}
}

func (d *detail) shown(m *Member, history []Sample) LiveHere {
	h := LiveHere{ID: m.ID, Role: m.Role, MemoryMax: m.MemoryMax, Memory: d.memory, Big: []LiveKey{}, Slow: []LiveSlow{}, History: history}
	if h.Memory == nil {
		h.Memory = []LiveShare{}
	}
	for _, k := range d.big {
		h.Big = append(h.Big, LiveKey{k.Key, k.N})
	}
	for _, r := range d.slow {
		h.Slow = append(h.Slow, LiveSlow{r.At.UnixMilli(), r.Took.Microseconds(), r.Words, r.More, r.Client})
	}
	return h
}

// serveLive answers GET /api/live?table=NAME, of a reader that has the owners of that table.
func (a *Admin) serveLive(w http.ResponseWriter, r *http.Request) {
	v, err := a.lives.get(r.Context())
	switch {
	case err != nil: // the client is gone
	case v.table != "" && v.table == r.URL.Query().Get("table"):
		sendJSON(w, v.rest())
	default:
		sendJSON(w, v.whole())
	}
}

// keepHistory samples the members until Close, so that the page has the last minutes
// from its first moment.
func (a *Admin) keepHistory() {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		select {
		case <-a.ctx.Done():
			return
		case now := <-tick.C:
			for _, m := range a.list() {
				if f, d, err := m.figures(); err == nil {
					m.past.add(now, &f, &d)
				}
			}
		}
	}
}
