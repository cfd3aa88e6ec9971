package exec

import (
	"bytes"
	"context"
	"errors"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
)

// Upload is a request with large values while it arrives.
type Upload struct {
	Cmd      *command.Command
	Database uint8
	Pinned   bool     // the database is
	Args     [][]byte // copies of the arguments so far; nil for a large value
	Kept     int      // total length of the copies
	Values   []Uploaded
	Left     int // bytes of the last value that have not arrived yet
	Came     int // bytes of all values that have arrived
	// Unserved: a value was discarded because the node did not serve its partition when it began.
	Unserved bool
	// Paused: the request has arrived, but CLIENT PAUSE, a hold or a move delays it.
	Paused bool
}

// Uploaded is a large value.
type Uploaded struct {
	At     int // its index among the arguments
	Staged engine.Staged
	Err    error // why it was discarded
}

// StageElement stages a string of n bytes, which a command will put into a hash or a list.
func (v *Uploaded) StageElement(e *engine.Engine, n int) {
	head := shape.AwayHead(n)
	if v.Staged, v.Err = e.StagePart(len(head) + n); v.Err != nil {
		return
	}
	if v.Err = v.Staged.Write(head[:]); v.Err != nil {
		v.Staged.Discard()
	}
}

// StageElement stages a string that a command will put into a hash or a list, so that it is not copied
// under a lock. The view is what a value with parts takes over when the staged string is offered
// (engine.Txn.Offer). The caller discards what is not taken over, also after an error.
func StageElement(ctx context.Context, e *engine.Engine, text []byte) (st engine.Staged, view []byte, err error) {
	head := shape.AwayHead(len(text))
	if st, err = e.StagePart(len(head) + len(text)); err == nil {
		err = st.Write(head[:])
	}
	for len(text) > 0 && err == nil {
		n := min(len(text), RewriteStep)
		err = errors.Join(st.Write(text[:n]), ctx.Err())
		text = text[n:]
	}
	if err == nil {
		view = st.Value()[len(head):]
	}
	return st, view, err
}

// Write stages the bytes of in that belong to the last value, and returns how many these are. After
// an error the value is discarded, and Write skips the rest of its bytes.
func (u *Upload) Write(in []byte) (used int) {
	in = in[:min(len(in), u.Left)]
	u.Left -= len(in)
	u.Came += len(in)
	if v := &u.Values[len(u.Values)-1]; v.Staged.Live() {
		if v.Err = v.Staged.Write(in); v.Err != nil {
			v.Staged.Discard()
		}
	}
	return len(in)
}

// Pause marks a complete request as paused, and copies its last arguments.
func (u *Upload) Pause(args [][]byte) {
	u.Paused = true
	for _, arg := range args {
		u.Args = append(u.Args, bytes.Clone(arg))
		u.Kept += len(arg)
	}
}

// Drop discards the values that were not stored.
func (u *Upload) Drop() {
	for i := range u.Values {
		if v := &u.Values[i]; v.Staged.Live() {
			v.Staged.Discard()
		}
	}
}

// viewElements has Args show the uploaded strings where they lie. If there was no memory for one, it
// answers the error and reports false.
func (r *Request) viewElements() (ok bool) {
	if r.Upload == nil {
		return true
	}
	for i := range r.Upload.Values {
		switch v := &r.Upload.Values[i]; {
		case v.Err != nil:
			r.ReplyStoreError(v.Err)
			return false
		case v.Staged.Live():
			r.Args[v.At] = v.Staged.Value()[len(shape.AwayHead(0)):]
		}
	}
	return true
}

// HideElements undoes viewElements, so that nobody copies the strings with the arguments, or reads them
// when a value has taken them over and the shard is unlocked: by then they may be gone.
func (u *Upload) HideElements(args [][]byte) {
	if u != nil && u.Cmd.Values.Elements {
		for i := range u.Values {
			args[u.Values[i].At] = nil
		}
	}
}

// offerElements has a value with parts take the uploaded strings over, under the lock of t, when they
// are stored.
func (r *Request) offerElements(t engine.Txn) {
	if r.Upload == nil {
		return
	}
	all := make([]*engine.Staged, 0, len(r.Upload.Values))
	for i := range r.Upload.Values {
		if st := &r.Upload.Values[i].Staged; st.Live() {
			all = append(all, st)
		}
	}
	t.Offer(all...)
}

// UseElements has Args show the strings that were uploaded for a hash or a list, and a value with parts
// take them over when they are stored under the lock of t. LockElementRun does that itself. If ok is
// false, the command is answered.
func (r *Request) UseElements(t engine.Txn) (ok bool) {
	if ok = r.viewElements(); ok {
		r.offerElements(t)
	}
	return ok
}

// KeepElement returns an argument, on which UseElements was called, for use by a goroutine, until it
// calls end. ok is false if there is no memory: the command is answered.
func (r *Request) KeepElement(i int) (element []byte, end func(), ok bool) {
	if r.Upload != nil {
		if v := r.Upload.value(i); v != nil {
			pin := v.Staged.Pin()
			return r.Args[i], pin.Release, true
		}
	}
	n, heap := int64(len(r.Args[i])), r.Heap
	if !heap.Charge(n) {
		r.Fail(ErrOOM)
		return nil, nil, false
	}
	return bytes.Clone(r.Args[i]), func() { heap.Refund(n) }, true
}

// giveUpload is called when the request's upload has a new owner. The connection may receive the next
// one already.
func (r *Request) giveUpload() {
	if r.conn.Upload == r.Upload {
		r.conn.Upload = nil
		r.conn.Socket.Stream(false)
	}
	r.Upload = nil
}

// Put stores argument i, which may be uploaded, as a string under key. expireAt is in unix
// milliseconds, 0 for never. The error is the engine's.
func (r *Request) Put(t engine.Txn, key []byte, i int, expireAt int64) error {
	if r.Upload != nil {
		if v := r.Upload.value(i); v != nil {
			if v.Err != nil {
				return v.Err
			}
			return t.SetStaged(&v.Staged, engine.TypeString, expireAt)
		}
	}
	return t.Set(key, r.Args[i], engine.TypeString, expireAt)
}

// Value returns argument i, which may be uploaded: then it is a view of the engine's memory, valid
// as long as the upload. The error is why an uploaded value was discarded.
func (r *Request) Value(i int) ([]byte, error) { return valueOf(r.Args, r.Upload, i) }

func valueOf(args [][]byte, u *Upload, i int) ([]byte, error) {
	if u != nil {
		if v := u.value(i); v != nil && v.Err != nil {
			return nil, v.Err
		} else if v != nil {
			return v.Staged.Value(), nil
		}
	}
	return args[i], nil
}

// value returns the uploaded value that is argument i, or nil.
func (u *Upload) value(i int) *Uploaded {
	for j := range u.Values {
		if u.Values[j].At == i {
			return &u.Values[j]
		}
	}
	return nil
}
