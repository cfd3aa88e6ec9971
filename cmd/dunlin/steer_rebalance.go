package main

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/dunlin-cache/dunlin/metrics/status"
)

func rebalanceCommand() *cobra.Command {
	var s steering
	var pause, resume bool
	c := &cobra.Command{
		Use:   "rebalance {--pause | --resume}",
		Short: "Pause or resume the rebalancing of partitions",
		Long: "While rebalancing is paused, nodes that join get no partitions. Nodes that leave\n" +
			"still hand theirs over, and lost copies are still replaced.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return s.run(cmd, func(ctx context.Context, token string) error { return s.pause(ctx, token, pause) })
		},
	}
	s.addTo(c, 10*time.Second)
	c.Flags().BoolVar(&pause, "pause", false, "move only partitions that must move")
	c.Flags().BoolVar(&resume, "resume", false, "balance partitions across all nodes again")
	c.MarkFlagsOneRequired("pause", "resume")
	c.MarkFlagsMutuallyExclusive("pause", "resume")
	return c
}

// pause sends the order to the present coordinator, again and again, until a second node has a
// table that carries it: if only the coordinator had the table, the order would die with it.
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

// askAgain is how often pause repeats the order: more than the time that a table takes to be
// issued.
const askAgain = time.Second

// haveTable reports whether two nodes, or the only node, have a table of the epoch or a later one.
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
