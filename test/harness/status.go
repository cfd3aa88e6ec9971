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

// Status is what the tests read of /api/status. The names are the wire's: the
// struct of package metrics is not used, so that renaming a field there fails here.
type Status struct {
	Cluster struct {
		Name       string
		Epoch      uint64
		Partitions int
		Peers      []struct {
			ID, Role, State, Addr, Admin string
			Epoch                        uint64
			Partitions                   int
		}
	}
	Members []memberStatus
}

// owners returns the ids of the nodes that own partitions, sorted; nil while
// some partition has no alive owner.
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

// Get fetches a path of an admin address; anything but status 200 is an error.
func Get(admin, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
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
