package proxy

import (
	"testing"

	"github.com/dunlin-cache/dunlin/internal/command"
)

// The proxy times a sample of the commands, each under its family. A slow command does not make it
// lose others.
func TestLatency(t *testing.T) {
	c := newCluster(t, 2, oneLoop(t))
	cl := c.dial()
	const rounds = 4
	for range rounds * sampleCommands {
		cl.send("GET k")
		cl.reply()
	}
	for range 2 * rounds * sampleCommands {
		cl.send("DBSIZE")
		cl.reply()
	}
	for range sampleCommands {
		cl.send("WAIT 0 0") // a command that may take as long as the client wants
		cl.reply()
	}
	s := c.stats()
	if got := s.Latency[command.FamilyRead].Count; got != rounds {
		t.Errorf("%d of %d GETs were timed, want %d", got, rounds*sampleCommands, rounds)
	}
	if got := s.Latency[command.FamilyWide].Count; got != 2*rounds {
		t.Errorf("%d of %d DBSIZEs were timed, want %d", got, 2*rounds*sampleCommands, 2*rounds)
	}
	if sum := s.Latency[command.FamilyRead].Sum(); sum <= 0 {
		t.Errorf("GETs took %v together", sum)
	}
}

// TestBatchSizes checks that commands that a client sends in one write reach the node in one write,
// and count as one batch.
func TestBatchSizes(t *testing.T) {
	c := newCluster(t, 1, oneLoop(t))
	cl := c.dial()
	cl.send("GET warm") // opens the pipe
	cl.reply()
	before := c.stats()
	cl.send("GET a", "GET b", "GET c", "GET d", "GET e")
	for range 5 {
		cl.reply()
	}
	after := c.stats()
	if got := after.BatchSizes[3] - before.BatchSizes[3]; got != 1 {
		t.Errorf("%d batches of 4 to 7 requests, want 1: %v", got, after.BatchSizes)
	}
	if got := after.BatchRequests - before.BatchRequests; got != 5 {
		t.Errorf("%d requests in batches, want 5", got)
	}
}

// TestNodeStats checks the numbers of pipes and outstanding requests of each node.
func TestNodeStats(t *testing.T) {
	c := newCluster(t, 2, oneLoop(t))
	cl := c.dial()
	cl.send("MGET a b c d e f g h")
	cl.reply()
	s := c.stats()
	if len(s.Nodes) != 2 || s.Nodes["n1"] == nil || s.Nodes["n1"].Open != 1 || s.Nodes["n1"].Inflight != 0 {
		t.Errorf("nodes %+v, want n1 and n2 with an open pipe each", s.Nodes)
	}
	if s.PipesOpen != 2 {
		t.Errorf("%d pipes are open, want 2", s.PipesOpen)
	}
}
