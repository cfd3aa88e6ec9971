package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
)

// These have a terminal show a page in the place of the one before: from the top, each line to its
// end, and nothing below.
const (
	toTop     = "\x1b[H"
	restBlank = "\x1b[K"
	belowGone = "\x1b[J"
)

func topCommand() *cobra.Command {
	var (
		admin  string
		period time.Duration
	)
	c := &cobra.Command{
		Use:   "top",
		Short: "Show what status shows, again and again",
		Long: "Top shows in a terminal what status prints, and refreshes it until it is interrupted.\n" +
			"Ops/s, hit ratio, hot keys and the slow log of one process are on its admin page.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := loadSettings(cmd, ""); err != nil {
				return err
			}
			if period <= 0 {
				return fmt.Errorf("--every %v: want more than 0", period)
			}
			return top(cmd.Context(), cmd.OutOrStdout(), reachable(admin), period)
		},
	}
	c.Flags().StringVar(&admin, "admin", loopback(adminPort), "admin address of any member")
	c.Flags().DurationVar(&period, "every", 2*time.Second, "how often to refresh")
	return c
}

// top refreshes until ctx ends. A cluster that does not answer is shown as that:
// it may come back.
func top(ctx context.Context, out io.Writer, admin string, period time.Duration) error {
	tick := time.NewTicker(period)
	defer tick.Stop()
	for ctx.Err() == nil {
		if _, err := io.WriteString(out, topPage(ctx, admin, period)); err != nil {
			return fmt.Errorf("cannot print: %w", err)
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	return nil
}

// topPage is one state of the screen.
func topPage(ctx context.Context, admin string, period time.Duration) string {
	ctx, cancel := context.WithTimeout(ctx, max(period, time.Second))
	defer cancel()
	text := bytes.NewBufferString(time.Now().Format("15:04:05   "))
	if r, err := readCluster(ctx, admin); err != nil {
		fmt.Fprintln(text, err)
	} else if err := printReport(text, r); err != nil {
		fmt.Fprintln(text, err)
	}
	return toTop + string(bytes.ReplaceAll(text.Bytes(), []byte("\n"), []byte(restBlank+"\n"))) + belowGone
}
