package node

import (
	"bytes"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/ring"
)

// A large value is not gathered with its request. It goes into the engine's memory piece by piece, as it arrives, and the
// command is executed when the request is there, wholly:
//
//	*5 SET key $500000 ▒▒▒▒ ▒▒▒▒▒▒ ▒▒▒▒▒ EX 60
//	     beginValue ┘   └─ take ──────┘      └ endUpload: like any command, but that put publishes the value
//
// Memory is taken for what has come, not for what was announced. When there is none, the rest of the value is thrown away,
// and the handler learns of it where it stores the value.

const (
	// uploadFrom is from how many bytes on a value is large. Such a value is too long for a cell of the engine.
	uploadFrom = 64 << 10
	// uploadPatience is for how long a value may stop on its way before its memory is wanted back.
	uploadPatience = 10 * time.Second
	// keptArgs is how many bytes of other arguments an upload keeps, more or less. With more of them, all are gathered.
	keptArgs = 128 << 10
)

// upload is a request with large values that is not whole yet.
type upload struct {
	cmd    *command.Command
	args   [][]byte // copies of the arguments so far, nil where a large value is
	kept   int      // their bytes
	values []uploaded
	left   int // bytes of the last value that have not come yet
	// unserved: a value was thrown away because its partition was not served when it began.
	unserved bool
	// held: it is whole, but its client is paused.
	held bool
}

// uploaded is a large value.
type uploaded struct {
	at     int // which argument it is
	staged engine.Staged
	err    error // why it was thrown away
}

// valuePlaces tells which argument of a command is a value for a key, or a piece of one.
var valuePlaces = map[command.ID]struct {
	first int
	pairs bool // and every second one from there
}{
	command.Set:      {first: 2},
	command.SetNX:    {first: 2},
	command.GetSet:   {first: 2},
	command.SetEx:    {first: 3},
	command.PSetEx:   {first: 3},
	command.Append:   {first: 2},
	command.SetRange: {first: 3},
	command.Restore:  {first: 3},
	command.MSet:     {first: 2, pairs: true},
	command.MSetNX:   {first: 2, pairs: true},
	command.MSetEx:   {first: 3, pairs: true},
}

// beginValue is called at the beginning of a large argument and says how many bytes of the input are used up. What is not
// a value for a key is gathered.
func (r *request) beginValue() (used int) {
	cn := r.conn
	p := &cn.parser
	u := cn.upload
	if u == nil {
		if u = cn.uploadOf(p.Args(), p.Total()); u == nil {
			p.Gather()
			return 0
		}
	}
	place, at := valuePlaces[u.cmd.ID], len(u.args)+len(p.Args())
	if at != place.first && (!place.pairs || at < place.first || (at-place.first)%2 != 0) || u.kept+p.Len() > keptArgs {
		p.Gather()
		return 0
	}
	cn.upload = u
	cn.socket.Stream(true)
	for _, arg := range p.Args() {
		u.args = append(u.args, bytes.Clone(arg))
		u.kept += len(arg)
	}
	u.args = append(u.args, nil)
	u.left = p.Large()
	r.stage(u, at)
	return p.Len()
}

// uploadOf begins an upload if args begin a request that is executed as far as one can tell.
func (cn *conn) uploadOf(args [][]byte, total int) *upload {
	if len(args) == 0 || !cn.state.Authenticated || cn.state.Apart {
		return nil
	}
	c := command.Lookup(args[0])
	if c == nil || !c.ArityOK(total) {
		return nil
	}
	if _, ok := valuePlaces[c.ID]; !ok {
		return nil
	}
	return &upload{cmd: c}
}

// stage takes a place for the value of argument at, which is about to come.
func (r *request) stage(u *upload, at int) {
	v := uploaded{at: at}
	key := u.args[1]
	if valuePlaces[u.cmd.ID].pairs {
		key = u.args[at-1]
	}
	if r.serves(ring.PartitionOf(key)) {
		v.staged, v.err = r.node.engine.Stage(key, u.left)
	} else {
		u.unserved = true
	}
	u.values = append(u.values, v)
}

// take moves what has come of the value on.
func (u *upload) take(in []byte) (used int) {
	in = in[:min(len(in), u.left)]
	u.left -= len(in)
	if v := &u.values[len(u.values)-1]; v.staged.Live() {
		if v.err = v.staged.Write(in); v.err != nil {
			v.staged.Discard()
		}
	}
	return len(in)
}

// endUpload executes the request, whose last arguments are args.
func (r *request) endUpload(args [][]byte) {
	cn := r.conn
	u := cn.upload
	r.args = append(u.args, args...)
	if r.mustWait(r.args) {
		u.hold(args)
		cn.block(0)
		return
	}
	if !u.unserved {
		r.upload = u
		r.dispatch()
		r.upload = nil
	} else if r.cmd = u.cmd; r.admit(plans[u.cmd.ID].keys) {
		// It is served by now, but the value is gone.
		r.replyWait()
		if plans[u.cmd.ID].keys == oneKey {
			r.latch(r.partition)
		} else {
			r.latch(r.partitions...)
		}
	}
	cn.dropUpload()
}

// hold keeps the last arguments, too.
func (u *upload) hold(args [][]byte) {
	u.held = true
	for _, arg := range args {
		u.args = append(u.args, bytes.Clone(arg))
		u.kept += len(arg)
	}
}

// dropUpload gives up what was not stored.
func (cn *conn) dropUpload() {
	if cn.upload != nil {
		cn.upload.drop()
		cn.upload = nil
		cn.socket.Stream(false)
	}
}

func (u *upload) drop() {
	for i := range u.values {
		if v := &u.values[i]; v.staged.Live() {
			v.staged.Discard()
		}
	}
}

// put stores argument i, which may be an upload, under key.
func (r *request) put(t engine.Txn, key []byte, i int, expireAt int64) error {
	if r.upload != nil {
		if v := r.upload.value(i); v != nil {
			if v.err != nil {
				return v.err
			}
			return t.SetStaged(&v.staged, engine.TypeString, expireAt)
		}
	}
	return t.Set(key, r.args[i], engine.TypeString, expireAt)
}

// value is argument i, which may be an upload: then it is a view of the engine's memory, valid as long as the upload.
func (r *request) value(i int) ([]byte, error) { return valueOf(r.args, r.upload, i) }

func valueOf(args [][]byte, u *upload, i int) ([]byte, error) {
	if u != nil {
		if v := u.value(i); v != nil && v.err != nil {
			return nil, v.err
		} else if v != nil {
			return v.staged.Value(), nil
		}
	}
	return args[i], nil
}

// value is the large value that is argument i, nil if it is not large.
func (u *upload) value(i int) *uploaded {
	for j := range u.values {
		if u.values[j].at == i {
			return &u.values[j]
		}
	}
	return nil
}
