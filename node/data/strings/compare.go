package strings

import (
	"bytes"
	"context"

	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// Commands that depend on what a key holds: they compare its value, or the digest of it, with an operand.
//
//	judge ─> short: at once
//	  └────> long: a goroutine compares the pinned value ··· Again ─> judge: same value? ─> its verdict
//	                         ^                                          │ no
//	                         └──────────────────────────────────────────┘

// condition is what a command depends on.
type condition uint8

const (
	always condition = iota
	ifMissing
	ifPresent
	ifEqual // here and below the value is compared with an operand
	ifUnequal
	ifDigest // here and below its digest is
	ifOtherDigest
)

// comparison returns the condition that an option names, always if it names none.
func comparison(option []byte) condition {
	switch {
	case exec.Is(option, "IFEQ"):
		return ifEqual
	case exec.Is(option, "IFNE"):
		return ifUnequal
	case exec.Is(option, "IFDEQ"):
		return ifDigest
	case exec.Is(option, "IFDNE"):
		return ifOtherDigest
	}
	return always
}

// compares reports whether the condition is about the value.
func (c condition) compares() bool { return c >= ifEqual }

// holds reports whether the condition holds for a key, if it is not about the value. For a key that is
// missing it may be: none is equal.
func (c condition) holds(found bool) bool {
	switch c {
	case ifMissing:
		return !found
	case ifPresent, ifEqual, ifDigest:
		return found
	}
	return true
}

// agrees reports whether the condition holds if the comparison has that result.
func (c condition) agrees(equal bool) bool { return equal == (c == ifEqual || c == ifDigest) }

// judge reports whether the string of the command's key meets the condition, with argument operand. If
// ok is false, an error is answered, or a goroutine compares and the command runs again.
func judge(r *exec.Request, t engine.Txn, item engine.Item, c condition, operand int) (met, ok bool) {
	want, err := r.Value(operand)
	value := item.Value()
	switch digests := c >= ifDigest; {
	case err != nil:
		r.ReplyStoreError(err)
		return false, false
	case digests && len(want) != digestLen:
		r.Fail(errDigest)
		return false, false
	case !digests && len(want) != len(value):
		return c.agrees(false), true
	case len(value) <= scanFrom:
	case r.Rewrite.IsOf(item, true):
		return c.agrees(r.Rewrite.Verdict), true
	case r.MayRewrite():
		judgeLater(r, t, item, c, operand)
		return false, false
	}
	equal, _ := c.compare(context.Background(), value, want)
	return c.agrees(equal), true
}

// judgeLater has a goroutine compare the value.
func judgeLater(r *exec.Request, t engine.Txn, item engine.Item, c condition, operand int) {
	w := r.NewRewrite()
	w.Sources = []exec.Source{exec.SourceOf(t, item, true)}
	w.Start(r, func(ctx context.Context) error {
		want, err := w.Value(operand)
		if err == nil {
			w.Verdict, err = c.compare(ctx, w.Sources[0].Value(), want)
		}
		return err
	})
}

// compare reports whether the value, or its digest, equals the operand. It stops with ctx's error when
// ctx ends.
func (c condition) compare(ctx context.Context, value, want []byte) (equal bool, err error) {
	if c >= ifDigest {
		digest, err := digestOf(ctx, value)
		return bytes.EqualFold(digest[:], want), err
	}
	for len(value) > 0 {
		n := min(len(value), exec.RewriteStep)
		if !bytes.Equal(value[:n], want[:n]) {
			return false, nil
		}
		if value, want = value[n:], want[n:]; len(value) > 0 {
			if err := exec.Step(ctx); err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

// delIfEq: DELIFEQ key value
func delIfEq(r *exec.Request) {
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	item, found, ok := r.FindString(t, r.Args[1])
	switch {
	case !ok:
	case found:
		deleteIf(r, t, item, ifEqual, 2)
	default:
		r.ReplyInt(0)
	}
}

// delEx: DELEX key [IFEQ value | IFNE value | IFDEQ digest | IFDNE digest]. As in Redis, a missing key
// hides a wrong option.
func delEx(r *exec.Request) {
	if n := len(r.Args); n != 2 && n != 4 {
		r.FailArity()
		return
	}
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	if len(r.Args) == 2 {
		r.ReplyBool(remove(r, t))
		return
	}
	item, found := r.Find(t, r.Args[1])
	c := comparison(r.Args[2])
	switch {
	case !found:
		r.ReplyInt(0)
	case item.Type() != engine.TypeString:
		r.Fail(errConditionType)
	case c == always:
		r.Fail(errCondition)
	default:
		deleteIf(r, t, item, c, 3)
	}
}

// deleteIf deletes the command's key if its string meets the condition, and answers whether it did.
func deleteIf(r *exec.Request, t engine.Txn, item engine.Item, c condition, operand int) {
	if met, ok := judge(r, t, item, c, operand); ok {
		r.ReplyBool(met && remove(r, t))
	}
}

// remove deletes the command's key, and reports whether there was one.
func remove(r *exec.Request, t engine.Txn) bool {
	there := t.Delete(r.Args[1])
	if there {
		r.Notify(keyevent.Generic, "del", r.Args[1])
	}
	return there
}
