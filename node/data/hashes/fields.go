package hashes

import (
	"math"

	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// maxTime is the latest time at which a field may expire, in unix milliseconds, as in Redis.
const maxTime = 1<<46 - 1

// fieldsAt returns the fields of FIELDS numfields field..., which begins at args[at], or what is
// wrong. badCount is the error for a wrong number.
func fieldsAt(args [][]byte, at int, badCount string) (fields [][]byte, problem string) {
	if at >= len(args) || !exec.Is(args[at], "FIELDS") {
		return nil, errNoFields
	}
	if at+1 >= len(args) {
		return nil, errFieldsInArgs
	}
	n, ok := resp.ParseInt(args[at+1])
	switch {
	case !ok || n < 1:
		return nil, badCount
	case n != int64(len(args)-at-2):
		return nil, errFieldsInArgs
	}
	return args[at+2:], ""
}

// parseTime reads a time when fields expire: in a unit of milliseconds, from a base on. It returns
// what is wrong, errTime if it is too late.
func parseTime(arg []byte, unit, base int64) (at int64, problem string) {
	n, ok := resp.ParseInt(arg)
	switch {
	case !ok:
		return 0, exec.ErrNotInteger
	case n < 0:
		return 0, errNegativeTime
	case n > maxTime/unit, n*unit > maxTime-base:
		return 0, errTime
	}
	return n*unit + base, ""
}

// errTime stands for the error that names the command.
const errTime = "expire time"

// errArity stands for the error that names the command, too.
const errArity = "arity"

// fail answers what parsing has found to be wrong.
func fail(r *exec.Request, problem string) {
	switch problem {
	case errTime:
		r.FailExpireTime()
	case errArity:
		r.FailArity()
	default:
		r.Fail(problem)
	}
}

// refuse answers a command that looks at the type of the value first, and then at its arguments.
func refuse(r *exec.Request, problem string) {
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	if item, found := t.Peek(r.Args[1]); found && item.Type() != engine.TypeHash {
		r.Fail(exec.ErrWrongType)
		return
	}
	fail(r, problem)
}

// option is one of EX, PX, EXAT, PXAT: the unit of its argument, and whether that is a time and not
// a duration.
func option(arg []byte) (unit int64, absolute, ok bool) {
	switch {
	case exec.Is(arg, "EX"):
		return 1000, false, true
	case exec.Is(arg, "PX"):
		return 1, false, true
	case exec.Is(arg, "EXAT"):
		return 1000, true, true
	case exec.Is(arg, "PXAT"):
		return 1, true, true
	}
	return 0, false, false
}

func base(r *exec.Request, absolute bool) int64 {
	if absolute {
		return 0
	}
	return r.Now
}

// hSetEX: HSETEX key [FNX | FXX] [EX s | PX ms | EXAT s | PXAT ms | KEEPTTL] FIELDS numfields field
// value...
func hSetEX(r *exec.Request) {
	q, pairs, ok := parseSetEX(r)
	if !ok {
		return
	}
	passes, n := 1, len(pairs)/2
	if q.fnx || q.fxx {
		passes = 2 // the first one looks
	}
	run, ok := r.LockElementPasses(pairs, 2, passes)
	if !ok {
		return
	}
	defer run.Release()
	h, ok := open(r, run.Txn)
	past := q.expires && q.at <= r.Now // the fields are deleted
	if !ok || !past && !run.FitsOver(pairs) {
		return
	}
	isLook, isAll := passes == 2 && run.First < n, run.First == 0 && run.End == n
	pairs = pairs[2*(run.First%n) : 2*((run.End-1)%n+1)]
	if isLook {
		if !q.holds(&h, pairs) {
			r.ReplyInt(0)
			return
		}
		if !isAll {
			run.GoesOn(0)
			return
		}
	}
	err := h.change(run, func(h hash, pairs [][]byte) (changed bool, err error) {
		if past {
			deleted, err := h.deletePairs(pairs)
			return deleted > 0, err
		}
		_, err = h.set(pairs, q.at, q.keep)
		return true, err
	}, pairs)
	if err != nil {
		r.ReplyValueError(err)
		return
	}
	changed := run.State != nil
	if !isAll && run.GoesOn(0) {
		return
	}
	switch {
	case past && changed:
		r.NotifyLeft(run.Txn, keyevent.Hash, "hdel", r.Args[1])
	case !past:
		r.Notify(keyevent.Hash, "hset", r.Args[1])
		if q.expires {
			r.Notify(keyevent.Hash, "hexpire", r.Args[1])
		}
	}
	r.ReplyInt(1)
}

// setQuery is what an HSETEX asks for.
type setQuery struct {
	expires  bool
	at       int64 // 0: never
	keep     bool
	fnx, fxx bool
}

// parseSetEX reads the arguments of HSETEX. If they are wrong, it answers the error and ok is
// false.
func parseSetEX(r *exec.Request) (q setQuery, pairs [][]byte, ok bool) {
	for i := 2; i < len(r.Args); i++ {
		arg := r.Args[i]
		unit, absolute, isTime := option(arg)
		problem := ""
		switch {
		case exec.Is(arg, "FIELDS"):
			if i >= len(r.Args)-3 {
				r.FailArity()
				return q, nil, false
			}
			n, ok := resp.ParseInt(r.Args[i+1])
			if !ok || n < 1 || n > math.MaxInt32 {
				r.Fail(errFieldCount)
				return q, nil, false
			}
			pairs = r.Args[i+2:]
			if len(pairs)%2 != 0 || n != int64(len(pairs)/2) {
				r.FailArity()
				return q, nil, false
			}
			return q, pairs, true
		case isTime && (q.expires || q.keep), exec.Is(arg, "KEEPTTL") && (q.expires || q.keep):
			problem = errOneExpiry
		case isTime && i == len(r.Args)-1:
			problem = errMissingTime
		case isTime:
			i++
			q.expires = true
			q.at, problem = parseTime(r.Args[i], unit, base(r, absolute))
		case exec.Is(arg, "KEEPTTL"):
			q.keep = true
		case (exec.Is(arg, "FXX") || exec.Is(arg, "FNX")) && (q.fxx || q.fnx):
			problem = errOneCondition
		case exec.Is(arg, "FXX"):
			q.fxx = true
		case exec.Is(arg, "FNX"):
			q.fnx = true
		default:
			r.FailQuoting(errUnknownArg, arg)
			return q, nil, false
		}
		if problem != "" {
			fail(r, problem)
			return q, nil, false
		}
	}
	r.FailArity()
	return q, nil, false
}

// holds reports whether the condition holds for all of some fields.
func (q *setQuery) holds(h *hash, pairs [][]byte) bool {
	if !q.fnx && !q.fxx {
		return true
	}
	for i := 0; i < len(pairs); i += 2 {
		if _, there := h.get(pairs[i]); there != q.fxx {
			return false
		}
	}
	return true
}

// deletePairs does what setting fields that have expired already comes to.
func (h *hash) deletePairs(pairs [][]byte) (deleted int, err error) {
	fields := h.r.Worker.Views[:0]
	for i := 0; i < len(pairs); i += 2 {
		fields = append(fields, pairs[i])
	}
	defer h.r.Worker.KeepViews(fields)
	return h.delete(fields)
}

// hGetEX: HGETEX key [EX s | PX ms | EXAT s | PXAT ms | PERSIST] FIELDS numfields field...
func hGetEX(r *exec.Request) {
	at, from, changes := int64(0), 2, false
	if unit, absolute, ok := option(r.Args[2]); ok {
		var problem string
		if at, problem = parseTime(r.Args[3], unit, base(r, absolute)); problem != "" {
			refuse(r, problem)
			return
		}
		from, changes = 4, true
	} else if exec.Is(r.Args[2], "PERSIST") {
		from, changes = 3, true
	}
	fields, problem := fieldsAt(r.Args, from, errNumFields)
	if from+1 >= len(r.Args) { // whatever the last word is
		problem = errArity
	}
	if problem != "" {
		refuse(r, problem)
		return
	}
	if !changes {
		getEach(r, fields, false, "", nil)
		return
	}
	past := from == 4 && at <= r.Now
	event := "hexpire"
	switch {
	case past:
		event = "hdel"
	case at == 0:
		event = "hpersist"
	}
	getEach(r, fields, past, event, func(h hash, fields [][]byte) (changed bool, err error) {
		if past {
			deleted, err := h.delete(fields)
			return deleted > 0, err
		}
		return h.setTimes(fields, at)
	})
}

// setTimes has those fields that there are expire at a time, never if that is 0. After an error
// nothing has changed.
func (h *hash) setTimes(fields [][]byte, at int64) (changed bool, err error) {
	if at == 0 && !h.big {
		return false, nil // none expires
	}
	if err := h.reserveTimes(fields, at); err != nil {
		return false, err
	}
	for _, field := range fields {
		h.setTime(field, at)
	}
	changed = h.changed
	h.timesSet(at)
	return changed, nil
}

// reserveTimes makes the hash one with parts, and takes the memory to set times.
func (h *hash) reserveTimes(fields [][]byte, at int64) error {
	if at == 0 {
		return nil
	}
	if !h.big {
		there := false
		for _, field := range fields {
			_, ok := h.get(field)
			there = there || ok
		}
		if !there {
			return nil
		}
		if _, err := h.grow(h.item.Value(), nil, 0); err != nil {
			return err
		}
	}
	return h.table.ReserveTimes(&h.r.Worker.Work, fields)
}

// setTime sets the time of a field, if there is one.
func (h *hash) setTime(field []byte, at int64) {
	if !h.big {
		return
	}
	found, err := h.table.SetExpireAt(field, at)
	if err != nil {
		panic("BUG: no memory for what was reserved: " + err.Error())
	}
	if found {
		h.changed = true
		h.table.NoteExpireAt(&h.r.Worker.Work, field, at)
	}
}

// timesSet ends what reserveTimes began.
func (h *hash) timesSet(at int64) {
	if !h.big {
		return
	}
	if h.changed {
		h.r.Worker.Work.Note(h.table.V)
		noteDue(h.table.V, at)
	}
	h.shrink()
}
