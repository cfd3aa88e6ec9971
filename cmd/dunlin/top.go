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

// With these, a terminal shows a page in place of the one before: clear each line to its end, and
// everything below the page.
const (
	toTop     = "\x1b[H"
	restBlank = "\x1b[K"
	belowGone = "\x1b[J"
)

func topCommand() *cobra.Command {
	var (
		admin     string
		tokenFile string
		period    time.Duration
	)
	c := &cobra.Command{
		Use:   "top",
		Short: "Show status and hot keys, refreshed until interrupted",
		Long: "Top shows the report of 'dunlin status' and the most used keys of all nodes, and\n" +
			"refreshes them until it is interrupted. Operations and hit ratio cover the last 15\n" +
			"seconds, uses of keys the last minute. The web page of an admin address shows the\n" +
			"same, and the last minutes of one process: operations, hit ratio, latency, slow log.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := loadSettings(cmd, ""); err != nil {
				return err
			}
			if period <= 0 {
				return fmt.Errorf("--every %v: want more than 0", period)
			}
			token, err := readToken(tokenFile)
			if err != nil {
				return err
			}
			return top(status.WithToken(cmd.Context(), token), cmd.OutOrStdout(), reachable(admin), period)
		},
	}
	c.Flags().StringVar(&admin, "admin", loopback(adminPort), "admin address of any member")
	addTokenFile(c, &tokenFile)
	c.Flags().DurationVar(&period, "every", 2*time.Second, "how often to refresh")
	return c
}

// top refreshes the screen until ctx ends. While the cluster does not answer, the screen says so:
// the cluster may come back.
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

// topPage returns one state of the screen.
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
	// topKeys is how many hot keys top shows, and topKeyWidth how many characters of each.
	topKeys     = 5
	topKeyWidth = 60
)

// printHotKeys writes the hot keys for people. Keys come from clients, so it escapes what a
// terminal would interpret.
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
		if k.Database != 0 {
			text += fmt.Sprint("  database ", k.Database)
		}
		fmt.Fprintf(out, "%12d  %-*s  %s\n", k.UsesPerSecond, width, k.Node, text)
	}
}
