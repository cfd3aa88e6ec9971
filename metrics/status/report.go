package status

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Report describes a whole cluster: as one member sees it, and with every member's own figures.
// `dunlin status` and `dunlin top` print it, and the page shows its figures.
type Report struct {
	Cluster Cluster  `json:"cluster"`
	Members []Member `json:"members"` // by role, then id
	// Unreachable are members that are alive in gossip, but whose admin address did not return
	// their figures.
	Unreachable []Unreachable `json:"unreachable"`
}

// Unreachable is a member that did not answer, and why.
type Unreachable struct {
	Peer
	Error string `json:"error"`
}

// Life identifies one run of a member: a restarted member has another Life.
type Life struct {
	ID   string
	Boot int64
}

// Life returns the run of the member to which the figures belong.
func (m *Member) Life() Life { return Life{m.ID, m.Boot} }

// Life returns the run of the described member.
func (p *Peer) Life() Life { return Life{p.ID, p.Boot} }

const (
	// maxStatus bounds the bytes read from an address that may not be a member's. It suffices for
	// the status of a member that knows thousands of others.
	maxStatus = 4 << 20
	// mostAsked bounds the connections of one report.
	mostAsked = 64
)

// client asks members. Their addresses are internal to the cluster, so client uses no proxy of the
// environment and follows no redirects.
var client = &http.Client{
	Transport:     &http.Transport{MaxIdleConnsPerHost: 1, IdleConnTimeout: 10 * time.Second},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// ReadReport reads the status at the admin address of a member, and asks all others that the status
// names.
func ReadReport(ctx context.Context, admin string) (*Report, error) {
	s, err := ReadStatus(ctx, admin)
	if err != nil {
		return nil, fmt.Errorf("cannot read status (is a member's admin address %s?): %w", admin, err)
	}
	return s.Report(ctx), nil
}

// ReadStatus reads the status at an admin address.
func ReadStatus(ctx context.Context, admin string) (*Status, error) {
	return readStatus(ctx, admin, "")
}

func readStatus(ctx context.Context, admin, query string) (*Status, error) {
	if admin == "" {
		return nil, errors.New("the member has no admin address that other machines can reach")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+admin+"/api/status"+query, nil)
	if err != nil {
		return nil, err
	}
	if token := tokenOf(ctx); token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusUnauthorized:
		return nil, fmt.Errorf("GET %s: %s (--admin-token-file gives the token)", req.URL, resp.Status)
	default:
		return nil, fmt.Errorf("GET %s: %s", req.URL, resp.Status)
	}
	var s Status
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxStatus)).Decode(&s); err != nil {
		return nil, fmt.Errorf("cannot decode status of %s: %w", admin, err)
	}
	return &s, nil
}

// Report asks for the figures of the members that s names but has no figures of, until ctx ends. It
// only reads s.
func (s *Status) Report(ctx context.Context) *Report {
	r := &Report{Cluster: s.Cluster, Members: slices.Clone(s.Members), Unreachable: []Unreachable{}}
	var (
		mu      sync.Mutex // protects r while the others answer
		waiting sync.WaitGroup
		slots   = make(chan struct{}, mostAsked)
	)
	for admin, peers := range s.elsewhere() {
		slots <- struct{}{}
		waiting.Go(func() {
			defer func() { <-slots }()
			answer, err := readStatus(ctx, admin, "?members")
			mu.Lock()
			defer mu.Unlock()
			r.merge(peers, answer, err)
		})
	}
	waiting.Wait()
	r.sort()
	return r
}

// elsewhere returns the members of other processes by admin address. Members of one process share
// an address.
func (s *Status) elsewhere() map[string][]Peer {
	here := map[Life]bool{}
	for i := range s.Members {
		here[s.Members[i].Life()] = true
	}
	others := map[string][]Peer{}
	for _, p := range s.Cluster.Peers {
		if !here[p.Life()] {
			others[p.Admin] = append(others[p.Admin], p)
		}
	}
	return others
}

// merge adds the answer of one address about the peers expected there.
func (r *Report) merge(peers []Peer, s *Status, err error) {
	found := map[Life]Member{}
	reason := "its admin address answers for other members"
	if err != nil {
		reason = err.Error()
	} else {
		for _, m := range s.Members {
			found[m.Life()] = m
		}
	}
	for _, p := range peers {
		if m, ok := found[p.Life()]; ok {
			r.Members = append(r.Members, m)
		} else {
			r.Unreachable = append(r.Unreachable, Unreachable{Peer: p, Error: reason})
		}
	}
}

func (r *Report) sort() {
	slices.SortFunc(r.Members, func(a, b Member) int { return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.ID, b.ID)) })
	slices.SortFunc(r.Unreachable, func(a, b Unreachable) int { return cmp.Compare(a.ID, b.ID) })
}

// NodeKey is a hot key and the node that has it.
type NodeKey struct {
	HotKey
	Node string `json:"node"`
}

// Hottest returns the hottest of the keys that members name, up to most of them, the most used
// first. While a partition moves, two members may name one key: the larger figure counts, as in the
// reply to HOTKEYS.
func Hottest(members []Member, most int) []NodeKey {
	all := []NodeKey{}
	for _, m := range members {
		for _, k := range m.HotKeys {
			all = append(all, NodeKey{k, m.ID})
		}
	}
	slices.SortFunc(all, func(a, b NodeKey) int {
		return cmp.Or(cmp.Compare(b.UsesPerSecond, a.UsesPerSecond), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Database, b.Database))
	})
	named := map[HotKey]bool{}
	all = slices.DeleteFunc(all, func(k NodeKey) bool {
		name := HotKey{Key: k.Key, Database: k.Database}
		again := named[name]
		named[name] = true
		return again
	})
	return all[:min(len(all), most)]
}

// NodePinned is a pinned database and the node that serves it.
type NodePinned struct {
	Pinned
	Node string `json:"node"`
}

// AllPinned returns the pinned databases that members serve, by number.
func AllPinned(members []Member) []NodePinned {
	all := []NodePinned{}
	for _, m := range members {
		for _, p := range m.Pinned {
			all = append(all, NodePinned{p, m.ID})
		}
	}
	slices.SortStableFunc(all, func(a, b NodePinned) int { return cmp.Compare(a.Database, b.Database) })
	return all
}
