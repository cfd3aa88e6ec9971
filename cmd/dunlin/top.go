package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/dunlin-cache/dunlin/metrics/status"
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
		Short: "Show what status shows, and hot keys, again and again",
		Long: "Top shows in a terminal what status prints and the keys used most, of all nodes, and\n" +
			"refreshes it until it is interrupted. Operations and hit ratio are of the last 15\n" +
			"seconds, uses of keys of the last minute. The page of an admin address has that, too, and\n" +
			"the last minutes of one process: operations, hit ratio, latency, its slow log.",
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
	for {
		page := topPage(ctx, admin, period)
		if ctx.Err() != nil {
			return nil // the page may be one that was interrupted
		}
		if _, err := io.WriteString(out, page); err != nil {
			return fmt.Errorf("cannot print: %w", err)
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// topPage is one state of the screen.
func topPage(ctx context.Context, admin string, period time.Duration) string {
	ctx, cancel := context.WithTimeout(ctx, max(period, time.Second))
	defer cancel()
	text := bytes.NewBufferString(time.Now().Format("15:04:05   "))
	if r, err := status.ReadReport(ctx, admin); err != nil {
		fmt.Fprintln(text, err)
	} else {
		_ = printReport(text, r) // a buffer takes everything
		printHotKeys(text, status.Hottest(r.Members, topKeys))
	}
	return toTop + string(bytes.ReplaceAll(text.Bytes(), []byte("\n"), []byte(restBlank+"\n"))) + belowGone
}

const (
	// topKeys is how many hot keys top shows, and topKeyWidth how much of each.
	topKeys     = 5
	topKeyWidth = 60
)

// printHotKeys writes keys for people. They come from clients, so that what a terminal
// would obey is escaped.
func printHotKeys(out io.Writer, keys []status.NodeKey) {
	if len(keys) == 0 {
		return
	}
	fmt.Fprint(out, "\nhot keys, uses/s\n")
	width := 0
	for _, k := range keys {
		width = max(width, utf8.RuneCountInString(k.Node))
	}
	for _, k := range keys {
		text := strconv.Quote(k.Key)
		if r := []rune(text); len(r) > topKeyWidth {
			text = string(r[:topKeyWidth]) + "…"
		}
		fmt.Fprintf(out, "%12d  %-*s  %s\n", k.UsesPerSecond, width, k.Node, text)
	}
}
