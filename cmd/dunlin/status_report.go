package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dunlin-cache/dunlin/metrics/status"
)

// printReport writes a report for people:
//
//	cluster dunlin   epoch 7   3 nodes, 1 proxy   4096 partitions, 4096 with a follower, 12 moving
//
//	MEMBER  ROLE  STATE    EPOCH  PARTITIONS  KEYS           MEMORY  HIT RATIO  OPS/S  CLIENTS  ADDRESS
//	n1      node  serving      7        1365  1234  12 MiB of 1 GiB     98.2 %   1200        3  127.0.0.1:6380
func printReport(out io.Writer, r *status.Report) error {
	roles := map[string]int{}
	for _, p := range r.Cluster.Peers {
		roles[p.Role]++
	}
	text := fmt.Sprintf("cluster %s   epoch %d   %s, %s   %d partitions, %d with a follower, %d moving\n\n", r.Cluster.Name, r.Cluster.Epoch,
		plural(roles["node"], "node", "nodes"), plural(roles["proxy"], "proxy", "proxies"), r.Cluster.Partitions,
		r.Cluster.Followed, r.Cluster.Moves)

	rows := [][]string{reportTitles}
	for _, m := range r.Members {
		rows = append(rows, memberRow(m, r.Cluster.Peers))
	}
	for _, u := range r.Unreachable {
		partitions, unknown := "-", "-" // a proxy has none
		if u.Role == "node" {
			partitions, unknown = strconv.Itoa(u.Partitions), "?"
		}
		rows = append(rows, []string{u.ID, u.Role, u.State, strconv.FormatUint(u.Epoch, 10), partitions,
			unknown, unknown, unknown, "?", "?", u.Addr})
	}
	text += alignedTable(rows) + pinnedTable(r)
	for _, remark := range remarks(r) {
		text += "\n" + remark + "\n"
	}
	if _, err := io.WriteString(out, text); err != nil {
		return fmt.Errorf("cannot print status: %w", err)
	}
	return nil
}

// pinnedTable returns the pinned databases with their nodes, "" if there are none.
func pinnedTable(r *status.Report) string {
	rows := [][]string{{"PINNED", "NODE", "PARTITION", "KEYS", "MEMORY", "COMMANDS"}}
	for _, p := range status.AllPinned(r.Members) {
		rows = append(rows, []string{"database " + strconv.Itoa(int(p.Database)), p.Node, strconv.Itoa(int(p.Partition)),
			strconv.FormatInt(p.Keys, 10), p.MemoryText(), status.ShareText(p.Share)})
	}
	if len(rows) == 1 {
		return ""
	}
	return "\n" + alignedTable(rows)
}

var reportTitles = []string{
	"MEMBER", "ROLE", "STATE", "EPOCH", "PARTITIONS", "KEYS", "MEMORY", "HIT RATIO", "OPS/S", "CLIENTS", "ADDRESS",
}

func memberRow(m status.Member, peers []status.Peer) []string {
	state := "unknown" // to the member asked first: this one is joining, or just gone
	for _, p := range peers {
		if p.ID == m.ID && p.Boot == m.Boot {
			state = p.State
		}
	}
	if !m.Ready {
		state += ", not ready"
	}
	partitions, keys, memory := "-", "-", "-"
	if m.Role == "node" {
		partitions = strconv.Itoa(m.Partitions)
		keys = strconv.FormatInt(m.Keys, 10)
		memory = status.BytesText(m.MemoryUsed) + " of " + status.BytesText(m.MemoryMax)
	}
	return []string{m.ID, m.Role, state, strconv.FormatUint(m.Epoch, 10), partitions, keys, memory,
		status.RatioText(m.RecentHits, m.RecentMisses, "-"),
		strconv.FormatFloat(m.CommandsPerSecond, 'f', 0, 64), strconv.Itoa(m.Clients), m.Addr}
}

// remarks returns, in words, what a reader of the table might miss.
func remarks(r *status.Report) []string {
	var all []string
	if r.Cluster.Epoch == 0 {
		all = append(all, "no table yet: the cluster is starting, or has no serving node")
	}
	if r.Cluster.Paused {
		all = append(all, "rebalancing is paused: nodes that join get no partitions (dunlin rebalance --resume)")
	}
	for _, m := range r.Members {
		if m.Fenced {
			all = append(all, m.ID+" is fenced: it serves nothing until it receives the current table")
		}
		if m.Epoch != r.Cluster.Epoch {
			all = append(all, fmt.Sprintf("%s has epoch %d, the cluster %d: a newer table is on its way", m.ID, m.Epoch, r.Cluster.Epoch))
		}
	}
	for _, p := range status.AllPinned(r.Members) {
		if p.Crowds {
			all = append(all, fmt.Sprintf("pinned database %d takes more than half of the memory or of the commands of %s", p.Database, p.Node))
		}
	}
	for _, u := range r.Unreachable {
		all = append(all, fmt.Sprintf("%s did not answer: %s", u.ID, u.Error))
	}
	return all
}

// alignedTable aligns rows, the first of which has the titles, in columns: figures to the right, so
// that they can be compared at a glance, and words to the left.
func alignedTable(rows [][]string) string {
	const firstFigure, lastFigure = 3, 9
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var text strings.Builder
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if firstFigure <= i && i <= lastFigure {
				line.WriteString(pad + cell + "  ")
			} else {
				line.WriteString(cell + pad + "  ")
			}
		}
		text.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return text.String()
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
