package exec

import "github.com/dunlin-cache/dunlin/node/engine"

// MaxString is the longest string that a command may make, in bytes: Redis's proto-max-bulk-len.
const MaxString = 512 << 20

// LengthOK reports whether a string of a+b bytes is allowed. If not, it answers the error.
func (r *Request) LengthOK(a, b int) bool {
	// a may be any offset that a client has sent: a+b could overflow, so subtract.
	if a > MaxString || b > MaxString-a {
		r.Fail(ErrTooLong)
		return false
	}
	return true
}

// Resize gives the key's string the length c.Length, and returns the string to be written to, valid
// until the lock ends. If patched is true, the piece c.Patch is already in it. If ok is false, the
// command is answered, or a goroutine makes the new value and the command runs again.
func (r *Request) Resize(t engine.Txn, item engine.Item, found bool, c Change) (value []byte, patched, ok bool) {
	key, err := r.Args[1], error(nil)
	switch patched = r.Rewrite.IsOf(item, found); {
	case patched:
		err = r.publish(t, item, found)
	case r.wantsRewrite(t, item, found, c):
		r.rewriteLater(t, item, found, c)
		return nil, false, false
	case !found && r.Rewrite.failed():
		err = r.Rewrite.Err // no old value has memory that could be used
	default:
		r.Rewrite.DropValues() // the change may need their memory
		if !found {
			err = t.Set(key, nil, engine.TypeString, 0)
		}
	}
	if err == nil {
		if value, err = t.Resize(key, c.Length); err != nil && !found {
			t.Delete(key) // the empty string set above
		}
	}
	if err != nil {
		r.ReplyStoreError(err)
	}
	return value, patched, err == nil
}

// publish stores the value that a goroutine made under the command's key, which keeps its expiry.
func (r *Request) publish(t engine.Txn, item engine.Item, found bool) error {
	expireAt := int64(0)
	if found {
		expireAt = item.ExpireAt()
	}
	return t.SetStaged(&r.Rewrite.Staged, engine.TypeString, expireAt)
}

// wantsRewrite reports whether a change would take too long under the lock. If there is no memory
// for a new value beside the old one, the change happens under the lock after all, because then it
// may use the old value's memory.
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
