package node

import (
	"bytes"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// A large value is not gathered with its request. It goes into the engine's memory piece by piece
// as it arrives, and the command is executed when the whole request is there:
//
//	*5 SET key $500000 ▒▒▒▒ ▒▒▒▒▒▒ ▒▒▒▒▒ EX 60
//	     beginValue ┘   └─ Write ─────┘      └ endUpload: like any command, but Put publishes the value
//
// Memory is taken for what has arrived, not for what was announced. If there is none, the rest of
// the value is thrown away, and the handler gets the error when it stores the value. scarce.go says
// who then has to give memory back.

const (
	// uploadFrom is the length from which a value is large, in bytes: too long for a cell of the
	// engine.
	uploadFrom = 64 << 10
	// uploadPatience is how long a value may stop arriving before its connection is closed.
	uploadPatience = 10 * time.Second
	// keptArgs is about how many bytes of other arguments an upload keeps. If there are more, the
	// whole request is gathered.
	keptArgs = 128 << 10
)

// beginValue is called at the beginning of a large argument, and returns how many bytes of the
// input it has used. An argument that is not the value of a key is gathered.
func (r *request) beginValue() (used int) {
	cn := r.conn
	p := &cn.parser
	if p.Skips() {
		p.Gather()
		return 0
	}
	u := cn.Upload
	if u == nil {
		if u = cn.uploadOf(p.Args(), p.Total()); u == nil {
			p.Gather()
			return 0
		}
	}
	at := len(u.Args) + len(p.Args())
	if !u.Cmd.Values.Has(at) || u.Kept+p.Len() > keptArgs {
		p.Gather()
		return 0
	}
	if cn.Upload == nil {
		cn.Upload, u.Database, u.Pinned = u, r.Database, r.Placement.Pins(r.Database)
	}
	cn.Socket.Stream(true)
	for _, arg := range p.Args() {
		u.Args = append(u.Args, bytes.Clone(arg))
		u.Kept += len(arg)
	}
	u.Args = append(u.Args, nil)
	u.Left = p.Large()
	r.stage(u, at)
	return p.Len()
}

// uploadOf begins an upload if args begin a request that will be executed, as far as the node can
// know by then.
func (cn *conn) uploadOf(args [][]byte, total int) *exec.Upload {
	if len(args) == 0 || !cn.State.Authenticated || cn.State.Apart && !cn.State.TracksOnly() {
		return nil
	}
	c := command.Lookup(args[0])
	if c == nil || c.Values.First == 0 || plans[c.ID].handler == nil || !c.ArityOK(total) {
		return nil
	}
	return &exec.Upload{Cmd: c}
}

// stage reserves a place for the value of argument at, which is about to arrive.
func (r *request) stage(u *exec.Upload, at int) {
	v := exec.Uploaded{At: at}
	key := u.Args[u.Cmd.Values.Key(at)]
	p := r.Placement.PartitionOf(u.Database, key)
	switch {
	case !r.serves(p) && !r.mayServe(p):
		u.Unserved = true
	case u.Cmd.Values.Elements:
		v.StageElement(r.node.engine, u.Left)
	default:
		v.Staged, v.Err = r.node.engine.Stage(engine.Section(p, u.Database), key, u.Left)
	}
	u.Values = append(u.Values, v)
}

// endUpload executes the request, whose last arguments are args.
func (r *request) endUpload(args [][]byte) {
	cn := r.conn
	u := cn.Upload
	r.Args, r.Database = append(u.Args, args...), u.Database
	if r.mustWait(r.Args) {
		u.Pause(args)
		cn.waited = r.Waited
		cn.block(0)
		return
	}
	if !u.Unserved && u.Pinned == r.Placement.Pins(u.Database) {
		r.Upload = u
		r.dispatch()
		r.Upload = nil
	} else {
		r.refuseUpload(u)
	}
	if !cn.Answering || !u.Paused { // otherwise it waits for the end of a hold, or for a move
		cn.dropUpload()
	}
}

// refuseUpload answers a request whose value was thrown away because a key was not served.
func (r *request) refuseUpload(u *exec.Upload) {
	if p := r.conn.pipe; p != nil {
		p.actor = 0 // DUNLIN AS was about this request
	}
	keys := plans[u.Cmd.ID].keys
	if keys == oneKey || !r.conn.listsLater(u.Cmd, len(r.Args)) {
		r.Upload = u // it may wait for a move; what is listed first would be executed behind that
		defer func() { r.Upload = nil }()
	}
	if r.Cmd = u.Cmd; !r.admit(keys) {
		return
	}
	// It is served by now, but the value is gone.
	r.replyWait()
	if keys == oneKey {
		r.latch(r.Partition)
	} else {
		r.latch(r.Partitions...)
	}
}

// dropUpload frees what was not stored.
func (cn *conn) dropUpload() {
	if cn.Upload != nil {
		cn.Upload.Drop()
		cn.Upload = nil
		cn.Socket.Stream(false)
	}
}
