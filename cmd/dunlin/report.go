package main

import (
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"

	"github.com/dunlin-cache/dunlin/metrics"
)

// printReport writes a report for people:
//
//	cluster dunlin   epoch 7   3 nodes, 1 proxy   4096 partitions
//
//	MEMBER  ROLE   STATE    EPOCH  PARTITIONS  KEYS  MEMORY            HIT RATIO  OPS/S  CLIENTS  ADDRESS
//	n1      node   serving      7        1365  1234  12 MiB of 1 GiB      98.2 %   1200        3  127.0.0.1:6380
func printReport(out io.Writer, r *report) error {
	nodes, proxies := 0, 0
	for _, p := range r.Cluster.Peers {
		if p.Role == "node" {
			nodes++
		} else {
			proxies++
		}
	}
	fmt.Fprintf(out, "cluster %s   epoch %d   %s, %s   %d partitions\n\n", r.Cluster.Name, r.Cluster.Epoch,
		plural(nodes, "node", "nodes"), plural(proxies, "proxy", "proxies"), r.Cluster.Partitions)

	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "MEMBER\tROLE\tSTATE\tEPOCH\tPARTITIONS\tKEYS\tMEMORY\tHIT RATIO\tOPS/S\tCLIENTS\tADDRESS")
	for _, m := range r.Members {
		printMember(w, m, r.Cluster.Peers)
	}
	for _, u := range r.Unreachable {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t?\t?\t?\t?\t?\t%s\n", u.ID, u.Role, u.State, u.Epoch, u.Partitions, u.Addr)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("cannot print status: %w", err)
	}
	for _, remark := range r.remarks() {
		fmt.Fprintf(out, "\n%s\n", remark)
	}
	return nil
}

func printMember(w io.Writer, m metrics.Member, peers []metrics.Peer) {
	state := "unknown" // to the first member: it is joining, or just gone
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
		memory = bytesText(m.MemoryUsed) + " of " + bytesText(m.MemoryMax)
	}
	fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\t%.0f\t%d\t%s\n", m.ID, m.Role, state, m.Epoch,
		partitions, keys, memory, ratioText(m.Hits, m.Misses), m.CommandsPerSecond, m.Clients, m.Addr)
}

// remarks says in words what a reader of the table might miss.
func (r *report) remarks() []string {
	var all []string
	if r.Cluster.Epoch == 0 {
		all = append(all, "no table yet: the cluster is starting, or has no serving node")
	}
	for _, m := range r.Members {
		if m.Epoch != r.Cluster.Epoch {
			all = append(all, fmt.Sprintf("%s has epoch %d, the cluster %d: a change is on its way", m.ID, m.Epoch, r.Cluster.Epoch))
		}
	}
	for _, u := range r.Unreachable {
		all = append(all, fmt.Sprintf("%s did not answer: %s", u.ID, u.Error))
	}
	return all
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

func ratioText(hits, misses uint64) string {
	if hits+misses == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(hits)/float64(hits+misses))
}

func bytesText(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	v, u := float64(n), 0
	for v >= 1024 && u < len(units)-1 {
		v, u = v/1024, u+1
	}
	if v == float64(int64(v)) {
		return fmt.Sprintf("%.0f %s", v, units[u])
	}
	return fmt.Sprintf("%.1f %s", v, units[u])
}
