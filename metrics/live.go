package metrics

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/session"
	"github.com/dunlin-cache/dunlin/ring"
)

// Live is what the page draws: the status, and more that would be too much there.
type Live struct {
	Status
	Nodes   []LiveNode   `json:"nodes"`            // of the table
	Owners  []int        `json:"owners,omitempty"` // by partition, indexes into Nodes; left out if the reader has this epoch's
	Moves   []LiveMove   `json:"moves"`
	Details []LiveDetail `json:"details"` // of Status.Members, in their order
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

// LiveDetail is about one member.
type LiveDetail struct {
	Memory  []LiveShare `json:"memory"`
	Hot     []LiveKey   `json:"hot"` // with uses a second
	Big     []LiveKey   `json:"big"` // with bytes
	Slow    []LiveSlow  `json:"slow"`
	History []Sample    `json:"history"` // the oldest first, a Sample every sampleEvery
}

// LiveShare is memory by its class.
type LiveShare struct {
	Class string `json:"class"`
	Bytes int64  `json:"bytes"`
}

// LiveKey is a key that stands out.
type LiveKey struct {
	Key string `json:"key"`
	N   int64  `json:"n"`
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
	latency  [command.NumFamilies]session.Durations
	memory   []LiveShare
	hot, big []session.KeyFigure
	slow     []session.SlowRequest
}

const shownSlow = 10

// live gathers what the page draws for a reader that has the owners of an epoch.
func (a *Admin) live(epoch uint64) Live {
	l := Live{Nodes: []LiveNode{}, Moves: []LiveMove{}, Details: []LiveDetail{}}
	members := a.list()
	var details []detail
	l.Status, details = a.gather(members)
	for i, d := range details {
		l.Details = append(l.Details, d.shown(members[i].past.list()))
	}
	if len(members) > 0 {
		if t := members[0].source.View.Table(); t != nil {
			l.addTable(t, members[0].source.View.Members(), epoch)
		}
	}
	return l
}

func (l *Live) addTable(t *ring.Table, members []ring.Member, epoch uint64) {
	alive := map[string]bool{}
	for _, m := range members {
		alive[m.Name()] = true
	}
	for _, n := range t.Nodes {
		l.Nodes = append(l.Nodes, LiveNode{n.ID, alive[n.Name()]})
	}
	for _, m := range t.Moves {
		l.Moves = append(l.Moves, LiveMove{int(m.Partition), int(m.From), int(m.To)})
	}
	if t.Epoch == epoch {
		return
	}
	for _, owner := range t.Owner {
		l.Owners = append(l.Owners, int(owner))
	}
}

func (d *detail) shown(history []Sample) LiveDetail {
	s := LiveDetail{Memory: d.memory, Hot: []LiveKey{}, Big: []LiveKey{}, Slow: []LiveSlow{}, History: history}
	if s.Memory == nil {
		s.Memory = []LiveShare{}
	}
	for _, k := range d.hot {
		s.Hot = append(s.Hot, LiveKey{k.Key, k.N})
	}
	for _, k := range d.big {
		s.Big = append(s.Big, LiveKey{k.Key, k.N})
	}
	for _, r := range d.slow {
		s.Slow = append(s.Slow, LiveSlow{r.At.UnixMilli(), r.Took.Microseconds(), r.Words, r.More, r.Client})
	}
	return s
}

// serveLive answers GET /api/live?epoch=N.
func (a *Admin) serveLive(w http.ResponseWriter, r *http.Request) {
	epoch, _ := strconv.ParseUint(r.URL.Query().Get("epoch"), 10, 64) // 0, no epoch, if it is none
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if err := json.NewEncoder(w).Encode(a.live(epoch)); err != nil {
		a.opt.Log.Debug("cannot send the live status", "err", err)
	}
}

// keepHistory samples the members until done closes, so that the page has the last
// minutes from its first moment.
func (a *Admin) keepHistory(done <-chan struct{}) {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		select {
		case <-done:
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
