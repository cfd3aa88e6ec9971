package exec

import "github.com/dunlin-cache/dunlin/node/engine"

// MaxString is how long a string may grow, Redis's proto-max-bulk-len.
const MaxString = 512 << 20

// LengthOK reports whether a string of a+b bytes is allowed. If not, the error is answered.
func (r *Request) LengthOK(a, b int) bool {
	// a may be any offset that a client has sent: subtract, do not add.
	if a > MaxString || b > MaxString-a {
		r.Fail(ErrTooLong)
		return false
	}
	return true
}

// Resize gives the key's string the length that c says, and returns it to be written to. patched:
// the piece that was to be written is there already. If ok is false, the command is answered, or
// will be executed again.
func (r *Request) Resize(t engine.Txn, item engine.Item, found bool, c Change) (value []byte, patched, ok bool) {
	key, err := r.Args[1], error(nil)
	switch patched = r.Rewrite.IsOf(item, found); {
	case patched:
		err = r.publish(t, item, found)
	case r.wantsRewrite(t, item, found, c):
		r.rewriteLater(t, item, found, c)
		return nil, false, false
	case !found && r.Rewrite.failed():
		err = r.Rewrite.Err // there is no old value whose memory could be used
	default:
		r.Rewrite.DropValues() // their memory may be needed
		if !found {
			err = t.Set(key, nil, engine.TypeString, 0)
		}
	}
	if err == nil {
		if value, err = t.Resize(key, c.Length); err != nil && !found {
			t.Delete(key) // nobody asked for an empty string
		}
	}
	if err != nil {
		r.ReplyStoreError(err)
	}
	return value, patched, err == nil
}

// publish gives the value that was made to the command's key, which keeps its expiry.
func (r *Request) publish(t engine.Txn, item engine.Item, found bool) error {
	expireAt := int64(0)
	if found {
		expireAt = item.ExpireAt()
	}
	return t.SetStaged(&r.Rewrite.Staged, engine.TypeString, expireAt)
}

// wantsRewrite reports whether a change would take too long here. If there is no memory for a new
// value beside the old one, the change happens under the lock after all: then the old one's memory
// may be used.
func (r *Request) wantsRewrite(t engine.Txn, item engine.Item, found bool, c Change) bool {
	if !r.MayRewrite() {
		return false
	}
	cost := 0
	if c.Patch > 0 {
		patch, _ := r.Value(c.Patch)
		cost = len(patch)
	}
	if found {
		cost += t.ResizeCost(item, c.Length)
	} else {
		cost += c.Length
	}
	return cost > RewriteFrom && r.Engine.IsLarge(len(r.Args[1]), c.Length)
}
