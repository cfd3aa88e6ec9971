package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/dunlin-cache/dunlin/metrics/status"
)

func drainCommand() *cobra.Command {
	var s steering
	var undo bool
	c := &cobra.Command{
		Use:   "drain ID",
		Short: "Move all data off a node, which keeps running",
		Long: "Drain moves everything that the node ID owns and follows to the other nodes, and\n" +
			"waits until the node is empty. Interrupting this command does not stop the drain.\n" +
			"The node keeps running, empty, until it is stopped; --undo gives it data again.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.run(cmd, func(ctx context.Context, token string) error {
				return s.drain(ctx, cmd.OutOrStdout(), args[0], token, undo)
			})
		},
	}
	s.addTo(c, 10*time.Minute)
	c.Flags().BoolVar(&undo, "undo", false, "cancel the drain: let the node own partitions again")
	return c
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
