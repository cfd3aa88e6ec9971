package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sort"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/dunlin-cache/dunlin/metrics"
)

// report is what `dunlin status` found, and what --json prints.
type report struct {
	Cluster metrics.Cluster  `json:"cluster"`
	Members []metrics.Member `json:"members"` // by role, then id
	// Unreachable are the members that gossip shows as alive but whose admin
	// address did not answer with them.
	Unreachable []unreachable `json:"unreachable"`
}

type unreachable struct {
	metrics.Peer
	Error string `json:"error"`
}

func statusCommand() *cobra.Command {
	var (
		admin   string
		asJSON  bool
		timeout time.Duration
	)
	c := &cobra.Command{
		Use:   "status",
		Short: "Show the members of a cluster and what they do",
		Long: "Status asks one member's admin address for the members that it knows, then each\n" +
			"of them for its figures.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := loadSettings(cmd, ""); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			r, err := readCluster(ctx, reachable(admin))
			if err != nil {
				return err
			}
			if asJSON {
				e := json.NewEncoder(cmd.OutOrStdout())
				e.SetIndent("", "  ")
				return e.Encode(r)
			}
			return printReport(cmd.OutOrStdout(), r)
		},
	}
	c.Flags().StringVar(&admin, "admin", loopback(adminPort), "admin address of any member")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().DurationVar(&timeout, "timeout", 5*time.Second, "how long to wait for all answers")
	return c
}

// reachable turns the address that a member binds (DUNLIN_ADMIN=0.0.0.0:9180 is
// also in the environment of a command run beside it) into one to connect to.
func reachable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		return loopback(port)
	}
	return address
}

// readCluster reads the status at first, and at the admin address of every
// member that it names. Members of one process share an address; it is asked once.
func readCluster(ctx context.Context, first string) (*report, error) {
	status, err := readStatus(ctx, first)
	if err != nil {
		return nil, fmt.Errorf("cannot read status (is a member's admin address %s?): %w", first, err)
	}
	r := &report{Cluster: status.Cluster, Members: status.Members, Unreachable: []unreachable{}}
	found := map[string]bool{} // by name: id and boot
	for _, m := range status.Members {
		found[memberName(m.ID, m.Boot)] = true
	}

	others := map[string][]metrics.Peer{} // by admin address
	for _, p := range status.Cluster.Peers {
		if !found[memberName(p.ID, p.Boot)] {
			others[p.Admin] = append(others[p.Admin], p)
		}
	}
	var (
		mu      sync.Mutex // over r while the others answer
		waiting sync.WaitGroup
	)
	for admin, peers := range others {
		waiting.Go(func() {
			s, err := readStatus(ctx, admin)
			mu.Lock()
			defer mu.Unlock()
			r.merge(peers, s, err)
		})
	}
	waiting.Wait()
	r.sort()
	return r, nil
}

// merge takes what one address answered about the peers expected there.
func (r *report) merge(peers []metrics.Peer, s *metrics.Status, err error) {
	for _, p := range peers {
		reason := "its admin address answers for other members"
		if err != nil {
			reason = err.Error()
		}
		found := false
		if s != nil {
			for _, m := range s.Members {
				if m.ID == p.ID && m.Boot == p.Boot {
					r.Members = append(r.Members, m)
					found = true
				}
			}
		}
		if !found {
			r.Unreachable = append(r.Unreachable, unreachable{Peer: p, Error: reason})
		}
	}
}

func (r *report) sort() {
	sort.Slice(r.Members, func(i, j int) bool {
		a, b := r.Members[i], r.Members[j]
		return a.Role < b.Role || a.Role == b.Role && a.ID < b.ID
	})
	sort.Slice(r.Unreachable, func(i, j int) bool { return r.Unreachable[i].ID < r.Unreachable[j].ID })
}

func memberName(id string, boot int64) string { return fmt.Sprintf("%s@%d", id, boot) }

// maxStatus bounds what is read from an address that may not be a member's.
const maxStatus = 16 << 20

func readStatus(ctx context.Context, admin string) (*metrics.Status, error) {
	if admin == "" {
		return nil, errors.New("it has no admin address that other machines can reach")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+admin+"/api/status", nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: %s", req.URL, resp.Status)
	}
	var s metrics.Status
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxStatus)).Decode(&s); err != nil {
		return nil, fmt.Errorf("cannot decode status of %s: %w", admin, err)
	}
	return &s, nil
}
