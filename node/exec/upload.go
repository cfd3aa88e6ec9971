package exec

import (
	"bytes"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/node/engine"
)

// Upload is a request with large values while it arrives.
type Upload struct {
	Cmd    *command.Command
	Args   [][]byte // copies of the arguments so far; nil for a large value
	Kept   int      // total length of the copies
	Values []Uploaded
	Left   int // bytes of the last value that have not arrived yet
	Came   int // bytes of all values that have arrived
	// Unserved: a value was discarded because the node did not serve its partition when it began.
	Unserved bool
	// Paused: the request has arrived, but CLIENT PAUSE or a hold delays it.
	Paused bool
}

// Uploaded is a large value.
type Uploaded struct {
	At     int // its index among the arguments
	Staged engine.Staged
	Err    error // why it was discarded
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
