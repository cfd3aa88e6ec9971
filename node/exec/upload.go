package exec

import (
	"bytes"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/node/engine"
)

// Upload is a request with large values that is not whole yet.
type Upload struct {
	Cmd    *command.Command
	Args   [][]byte // copies of the arguments so far, nil where a large value is
	Kept   int      // their bytes
	Values []Uploaded
	Left   int // bytes of the last value that have not come yet
	// unserved: a value was thrown away because its partition was not served when it began.
	Unserved bool
	// held: it is whole, but its client is paused.
	Held bool
}

// Uploaded is a large value.
type Uploaded struct {
	At     int // which argument it is
	Staged engine.Staged
	Err    error // why it was thrown away
}

// Take moves what has come of the value on.
func (u *Upload) Take(in []byte) (used int) {
	in = in[:min(len(in), u.Left)]
	u.Left -= len(in)
	if v := &u.Values[len(u.Values)-1]; v.Staged.Live() {
		if v.Err = v.Staged.Write(in); v.Err != nil {
			v.Staged.Discard()
		}
	}
	return len(in)
}

// Hold keeps the last arguments, too.
func (u *Upload) Hold(args [][]byte) {
	u.Held = true
	for _, arg := range args {
		u.Args = append(u.Args, bytes.Clone(arg))
		u.Kept += len(arg)
	}
}

// Drop gives up the values that were not stored.
func (u *Upload) Drop() {
	for i := range u.Values {
		if v := &u.Values[i]; v.Staged.Live() {
			v.Staged.Discard()
		}
	}
}

// Put stores argument i, which may be an upload, under key.
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

// Value is argument i, which may be an upload: then it is a view of the engine's memory, valid as
// long as the upload.
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

// value is the large value that is argument i, nil if it is not large.
func (u *Upload) value(i int) *Uploaded {
	for j := range u.Values {
		if u.Values[j].At == i {
			return &u.Values[j]
		}
	}
	return nil
}
