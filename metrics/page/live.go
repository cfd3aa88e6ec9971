package page

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/dunlin-cache/dunlin/metrics/status"
	"github.com/dunlin-cache/dunlin/ring"
)

// Live is what the page draws.
type Live struct {
	Version   string         `json:"version"`
	UnixMilli int64          `json:"unix_milli"` // now, by this machine's clock
	Cluster   status.Cluster `json:"cluster"`    // its members are in Rows
	Alive     int            `json:"alive"`      // their number
	Rows      []Row          `json:"rows"`       // by role, then id
	Table     string         `json:"table"`      // its name; "": none
	Nodes     []LiveNode     `json:"nodes"`      // of the table
	// Owners has an index into Nodes for each partition. It is left out if the reader has the
	// owners of this table.
	Owners []int               `json:"owners,omitempty"`
	Moves  []LiveMove          `json:"moves"`
	Hot    []status.NodeKey    `json:"hot"` // of all nodes
	Pinned []status.NodePinned `json:"pinned"`
	Here   []LiveHere          `json:"here"` // the members of this process
}

// Row is a member: what others see of it, and its own figures.
type Row struct {
	status.Peer
	Here    bool           `json:"here"`             // in this process
	Figures *status.Member `json:"figures"`          // null: it has not answered
	Remark  string         `json:"remark,omitempty"` // what is wrong with it
	Error   string         `json:"error,omitempty"`  // why its figures are unknown
}

// LiveNode is a node of the table, alive or not.
type LiveNode struct {
	ID    string `json:"id"`
	Alive bool   `json:"alive"`
}

// LiveMove is a partition that moves.
type LiveMove struct {
	Partition int `json:"partition"`
	From      int `json:"from"` // indexes into Nodes
	To        int `json:"to"`
}

// LiveHere is what only a member's own process shows about it.
type LiveHere struct {
	ID        string               `json:"id"`
	Role      string               `json:"role"`
	MemoryMax int64                `json:"memory_max_bytes"`
	Memory    []status.MemoryClass `json:"memory"`
	Big       []LiveKey            `json:"big"`
	Slow      []LiveSlow           `json:"slow"`
	History   []status.Sample      `json:"history"` // oldest first, one every status.SampleEvery
}

// LiveKey is one of the largest keys.
type LiveKey struct {
	Key      string `json:"key"`
	Database uint8  `json:"database"`
	Bytes    int64  `json:"bytes"`
}

// LiveSlow is a request of the slow log, with its first words only.
type LiveSlow struct {
	UnixMilli int64    `json:"unix_milli"`
	Micros    int64    `json:"micros"`
	Words     []string `json:"words"`
	More      int      `json:"more"`
	Client    string   `json:"client"`
}

// shownHot is how many hot keys of the cluster the page lists.
const shownHot = 10

// gone is the state of a node that is in the table and no longer in gossip.
const gone = "gone"

// live collects what the page draws.
func (p *Page) live() Live {
	s := p.local.Gather()
	l := Live{
		Version: s.Version, UnixMilli: time.Now().UnixMilli(),
		Nodes: []LiveNode{}, Moves: []LiveMove{}, Here: []LiveHere{},
	}
	for i := range s.Details {
		l.Here = append(l.Here, shown(&s.Members[i], &s.Details[i]))
	}
	l.addRows(&s.Status, p.others(&s.Status))
	if s.Table != nil {
		l.addTable(s.Table)
	}
	slices.SortFunc(l.Rows, func(a, b Row) int { return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.ID, b.ID)) })
	l.Cluster = s.Cluster
	l.Cluster.Peers = []status.Peer{}
	return l
}

// addRows adds the alive members. r, which may be nil, has their last answers.
func (l *Live) addRows(s *status.Status, r *status.Report) {
	figures, reasons, here := map[status.Life]*status.Member{}, map[status.Life]string{}, map[status.Life]bool{}
	if r != nil {
		for i := range r.Members {
			figures[r.Members[i].Life()] = &r.Members[i]
		}
		for _, u := range r.Unreachable {
			reasons[u.Life()] = u.Error
		}
	}
	for i := range s.Members {
		figures[s.Members[i].Life()] = &s.Members[i]
		here[s.Members[i].Life()] = true
	}
	l.Alive, l.Rows = len(s.Cluster.Peers), []Row{}
	var known []status.Member
	for _, p := range s.Cluster.Peers {
		row := Row{Peer: p, Here: here[p.Life()], Figures: figures[p.Life()], Error: reasons[p.Life()]}
		row.Remark = row.remark()
		l.Rows = append(l.Rows, row)
		if row.Figures != nil {
			known = append(known, *row.Figures)
		}
	}
	l.Hot, l.Pinned = status.Hottest(known, shownHot), status.AllPinned(known)
}

func (r *Row) remark() string {
	switch {
	case r.Figures == nil && r.Error != "" && r.Admin != "":
		return "no answer"
	case r.Figures == nil: // it has not been asked yet, or cannot be asked
	case r.Figures.Fenced:
		return "fenced"
	case !r.Figures.Ready:
		return "not ready"
	}
	return ""
}

func (l *Live) addTable(t *ring.Table) {
	alive, listed := map[status.Life]bool{}, map[string]bool{}
	for i := range l.Rows {
		alive[l.Rows[i].Life()] = true
		listed[l.Rows[i].ID] = true
	}
	for _, n := range t.Nodes {
		l.Nodes = append(l.Nodes, LiveNode{n.ID, alive[status.Life{ID: n.ID, Boot: n.Boot}]})
		if !listed[n.ID] {
			n.Admin = "" // nobody answers there
			l.Rows = append(l.Rows, Row{Peer: status.PeerOf(t, n, gone)})
		}
	}
	for _, m := range t.Moves {
		l.Moves = append(l.Moves, LiveMove{int(m.Partition), int(m.From), int(m.To)})
	}
	// An epoch alone does not identify a table: a cluster that starts anew counts from 1.
	l.Table = fmt.Sprint(t.Epoch, " ", t.Issuer)
	for _, owner := range t.Owner {
		l.Owners = append(l.Owners, int(owner))
	}
}

func shown(m *status.Member, d *status.Detail) LiveHere {
	h := LiveHere{
		ID: m.ID, Role: m.Role, MemoryMax: m.MemoryMax, Memory: d.Memory, History: d.History,
		Big: []LiveKey{}, Slow: []LiveSlow{},
	}
	if h.Memory == nil {
		h.Memory = []status.MemoryClass{}
	}
	for _, k := range d.Big {
		h.Big = append(h.Big, LiveKey{k.Key, k.Database, k.N})
	}
	for _, r := range d.Slow {
		h.Slow = append(h.Slow, LiveSlow{r.At.UnixMilli(), r.Took.Microseconds(), r.Words, r.More, r.Client})
	}
	return h
}
