package node

import (
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/ring"
)

// request is a command in the hands of the dispatcher: what its handler sees, and what only the
// node knows of it. A worker has one.
type request struct {
	exec.Request
	node   *Node
	worker *worker

	// Set once for all requests of one input.
	conn   *conn
	view   *ownership.View
	fenced bool
	// careful: some partition that view serves may not be used, because of the fence or a latch of
	// the pipe. One flag, for the fast path.
	careful bool
	// timedFrom is the number of arguments from which a command is timed, see timing.go. It is 0 in
	// an input that is sampled.
	timedFrom int
	sampled   bool // the keys of the input count for HOTKEYS

	// longEnough: this input has used its share of the loop's time. The rest of it is read in the
	// next iteration.
	longEnough bool
	unused     int // bytes of the present request, if it is to be read again

	wanted ring.PartitionSet // by an EACH that is executed
}

// own makes a handler of a function that needs the node.
func own(h func(r *request)) exec.Handler {
	return func(r *exec.Request) { h(&r.Host.(*conn).worker.request) }
}
