package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dunlin-cache/dunlin/metrics/control"
	"github.com/dunlin-cache/dunlin/metrics/status"
)

// steering is what the commands that change a running cluster have in common.
type steering struct {
	admin, secretFile string
	timeout           time.Duration
}

func (s *steering) addTo(c *cobra.Command, timeout time.Duration) {
	c.Flags().StringVar(&s.admin, "admin", loopback(adminPort), "admin address of any member")
	c.Flags().StringVar(&s.secretFile, "secret-file", "", "file with the cluster's secret")
	c.Flags().DurationVar(&s.timeout, "timeout", timeout, "how long to wait until it is done")
}

func drainCommand() *cobra.Command {
	var s steering
	var undo bool
	c := &cobra.Command{
		Use:   "drain ID",
		Short: "Have a node hand over its data and stay, empty",
		Long: "Drain has the other nodes take over all that the node ID owns and follows, and\n" +
			"waits until it is empty. It goes on if this command is interrupted. The node runs\n" +
			"on until it is stopped, or takes part again with --undo.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.run(cmd, func(ctx context.Context, token string) error {
				return s.drain(ctx, cmd.OutOrStdout(), args[0], token, undo)
			})
		},
	}
	s.addTo(c, 10*time.Minute)
	c.Flags().BoolVar(&undo, "undo", false, "take part again")
	return c
}

func rebalanceCommand() *cobra.Command {
	var s steering
	var pause, resume bool
	c := &cobra.Command{
		Use:   "rebalance {--pause | --resume}",
		Short: "Stop partitions from moving without need, or let them move again",
		Long: "While rebalancing is paused, nodes that join get no partitions. Nodes that leave\n" +
			"hand theirs over, and lost copies are replaced, all the same.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return s.run(cmd, func(ctx context.Context, token string) error { return s.pause(ctx, token, pause) })
		},
	}
	s.addTo(c, 10*time.Second)
	c.Flags().BoolVar(&pause, "pause", false, "nothing moves that need not")
	c.Flags().BoolVar(&resume, "resume", false, "partitions move where they belong")
	c.MarkFlagsOneRequired("pause", "resume")
	c.MarkFlagsMutuallyExclusive("pause", "resume")
	return c
}

// run does what both commands begin with.
func (s *steering) run(cmd *cobra.Command, do func(ctx context.Context, token string) error) error {
	if err := loadSettings(cmd, ""); err != nil {
		return err
	}
	secret, err := readSecret(s.secretFile)
	if err != nil {
		return err
	}
	token := adminToken(secret)
	if token == "" {
		token = control.NoToken
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), s.timeout)
	defer cancel()
	s.admin = reachable(s.admin)
	return do(ctx, token)
}

func (s *steering) drain(ctx context.Context, out io.Writer, id, token string, undo bool) error {
	node, err := s.peer(ctx, func(_ status.Cluster, p status.Peer) bool { return p.ID == id && p.Role == "node" })
	if err != nil {
		return fmt.Errorf("cannot drain %s: %w", id, err)
	}
	query := url.Values{"member": {id}, "on": {strconv.FormatBool(!undo)}}
	if err := order(ctx, node.Admin, "/api/drain", query, token); err != nil || undo {
		return err
	}
	last := -1
	return s.until(ctx, func(c status.Cluster) bool {
		for _, p := range c.Peers {
			if p.ID != id || p.Boot != node.Boot {
				continue
			}
			if left := p.Partitions + p.Follows; left != last {
				fmt.Fprintf(out, "%s owns %d partitions and follows %d\n", id, p.Partitions, p.Follows)
				last = left
			}
			return p.State == "leaving" && last == 0
		}
		return true // it is gone
	})
}

// pause gives the order to the coordinator, whoever that is, again and again until a table
// says so that another node has, too: a coordinator may die with it.
func (s *steering) pause(ctx context.Context, token string, paused bool) error {
	query := url.Values{"paused": {strconv.FormatBool(paused)}}
	ask := func() error {
		coordinator, err := s.peer(ctx, func(c status.Cluster, p status.Peer) bool {
			return p.ID == c.Coordinator && p.Role == "node"
		})
		if err != nil {
			return fmt.Errorf("cannot find the coordinator: %w", err)
		}
		return order(ctx, coordinator.Admin, "/api/rebalance", query, token)
	}
	if err := ask(); err != nil {
		return err
	}
	asked, epoch := time.Now(), uint64(0)
	return s.until(ctx, func(c status.Cluster) bool {
		if c.Paused != paused {
			epoch = 0
			if time.Since(asked) >= askAgain {
				asked = time.Now()
				_ = ask() // there may be no coordinator just now
			}
			return false
		}
		if epoch == 0 {
			epoch = c.Epoch
		}
		return haveTable(c, epoch)
	})
}

// askAgain is longer than it takes to issue a table.
const askAgain = time.Second

// haveTable tells whether two nodes have a table of the epoch or one that follows it, or
// the only node has.
func haveTable(c status.Cluster, epoch uint64) bool {
	nodes, have := 0, 0
	for _, p := range c.Peers {
		if p.Role != "node" {
			continue
		}
		if nodes++; p.Epoch >= epoch {
			have++
		}
	}
	return have >= min(nodes, 2)
}

// peer returns the member that is meant, as the member at --admin sees it.
func (s *steering) peer(ctx context.Context, meant func(status.Cluster, status.Peer) bool) (status.Peer, error) {
	seen, err := status.ReadStatus(ctx, s.admin)
	if err != nil {
		return status.Peer{}, err
	}
	for _, p := range seen.Cluster.Peers {
		if meant(seen.Cluster, p) {
			return p, nil
		}
	}
	return status.Peer{}, errors.New("there is no such node")
}

// until waits until the cluster is as it should be. A member that does not answer once
// may do so the next time.
func (s *steering) until(ctx context.Context, done func(status.Cluster) bool) error {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		seen, err := status.ReadStatus(ctx, s.admin)
		if err == nil && done(seen.Cluster) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not done yet, and still going on: %w", errors.Join(ctx.Err(), err))
		case <-tick.C:
		}
	}
}

// order posts a request that changes something.
func order(ctx context.Context, admin, path string, query url.Values, token string) error {
	if admin == "" {
		return errors.New("it has no admin address that other machines can reach")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+admin+path+"?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
		return fmt.Errorf("%s refuses: %s", admin, strings.TrimSpace(string(text)))
	}
	return nil
}
