package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"
)

// Status holds the fields of /api/status that tests read. It is not the struct of package
// metrics/status, so that a renamed field there fails a test here.
type Status struct {
	Cluster struct {
		Name       string
		Epoch      uint64
		Partitions int
		Moves      int
		Peers      []struct {
			ID, Role, State, Addr, Admin string
			Epoch                        uint64
			Partitions                   int
		}
	}
	Members []memberStatus
}

type memberStatus struct {
	ID, Role   string
	Ready      bool
	Epoch      uint64
	Partitions int
	Keys       int64
	MemoryMax  int64 `json:"memory_max_bytes"`
	Hits       uint64
	Misses     uint64
	Clients    int
	Commands   uint64
}

// owners returns the sorted ids of the nodes that own partitions, or nil while some partition has
// no owner that is alive.
func (s *Status) owners() (ids []string) {
	owned := 0
	for _, p := range s.Cluster.Peers {
		if owned += p.Partitions; p.Partitions > 0 {
			ids = append(ids, p.ID)
		}
	}
	if owned != 4096 {
		return nil
	}
	slices.Sort(ids)
	return ids
}

// Status reads /api/status.
func (m *Member) Status() (s Status, err error) {
	body, err := Get(m.Admin, "/api/status")
	if err == nil {
		err = json.Unmarshal(body, &s)
	}
	return s, err
}

// Get fetches a path from an admin address within a second. Any HTTP status but 200 is an error.
func Get(admin, path string) ([]byte, error) { return getWithin(time.Second, admin, path) }

func getWithin(patience time.Duration, admin, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+admin+path, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s", path, resp.Status)
	}
	return body, err
}
