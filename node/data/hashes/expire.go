package hashes

import (
	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// What commands on the expiry of a field answer for it.
const (
	noField      = -2
	noExpiry     = -1
	conditionNot = 0
	timeSet      = 1
	timePast     = 2
)

// hExpire: HEXPIRE key seconds [NX | XX | GT | LT] FIELDS numfields field...
func hExpire(r *exec.Request) { setExpiry(r, 1000, false) }

// hPExpire: HPEXPIRE key milliseconds [NX | XX | GT | LT] FIELDS numfields field...
func hPExpire(r *exec.Request) { setExpiry(r, 1, false) }

// hExpireAt: HEXPIREAT key unix-seconds [NX | XX | GT | LT] FIELDS numfields field...
func hExpireAt(r *exec.Request) { setExpiry(r, 1000, true) }

// hPExpireAt: HPEXPIREAT key unix-milliseconds [NX | XX | GT | LT] FIELDS numfields field...
func hPExpireAt(r *exec.Request) { setExpiry(r, 1, true) }

// condition is one of NX, XX, GT, LT, or 0.
type condition byte

func conditionOf(arg []byte) condition {
	for _, word := range [...]string{"NX", "XX", "GT", "LT"} {
		if exec.Is(arg, word) {
			return condition(word[0])
		}
	}
	return 0
}

// allows reports whether the present expiry, 0 for none, lets another one be set.
func (c condition) allows(present, at int64) bool {
	switch c {
	case 'N':
		return present == 0
	case 'X':
		return present != 0
	case 'G':
		return present != 0 && at > present
	case 'L':
		return present == 0 || at < present
	}
	return true
}

func setExpiry(r *exec.Request, unit int64, absolute bool) {
	at, problem := parseTime(r.Args[2], unit, base(r, absolute))
	if problem != "" {
		refuse(r, problem)
		return
	}
	from, c := 3, conditionOf(r.Args[3])
	if c != 0 {
		from = 4
	}
	fields, problem := fieldsAt(r.Args, from, errNumFieldsArg)
	if problem != "" {
		refuse(r, problem)
		return
	}
	event := "hexpire"
	if at <= r.Now {
		event = "hdel"
	}
	eachField(r, fields, event, func(h hash, fields [][]byte) (changed bool, err error) {
		if at <= r.Now {
			return h.expireNow(fields, c)
		}
		if h.big || c.allows(0, at) {
			if err := h.reserveTimes(fields, at); err != nil {
				return false, err
			}
		}
		for _, field := range fields {
			e, ok := h.get(field)
			switch {
			case !ok:
				h.r.ReplyInt(noField)
			case !c.allows(e.expireAt, at):
				h.r.ReplyInt(conditionNot)
			default:
				h.setTime(field, at)
				h.r.ReplyInt(timeSet)
				changed = true
			}
		}
		h.timesSet(at)
		return changed, nil
	})
}

// expireNow is setExpiry with a time that is past: it deletes the fields.
func (h *hash) expireNow(fields [][]byte, c condition) (changed bool, err error) {
	gone := h.r.Worker.Views[:0]
	for _, field := range fields {
		e, ok := h.get(field)
		switch {
		case !ok || contains(gone, field):
			h.r.ReplyInt(noField)
		case !c.allows(e.expireAt, 1):
			h.r.ReplyInt(conditionNot)
		default:
			gone = append(gone, field)
			h.r.ReplyInt(timePast)
		}
	}
	defer h.r.Worker.KeepViews(gone)
	deleted, err := h.delete(gone)
	return deleted > 0, err
}

// hPersist: HPERSIST key FIELDS numfields field...
func hPersist(r *exec.Request) {
	fields, problem := fieldsAt(r.Args, 2, errNumFields)
	if problem != "" {
		refuse(r, problem)
		return
	}
	eachField(r, fields, "hpersist", func(h hash, fields [][]byte) (changed bool, err error) {
		for _, field := range fields {
			if h.timeOrReply(field) != 0 {
				h.setTime(field, 0)
				h.r.ReplyInt(timeSet)
				changed = true
			}
		}
		h.timesSet(0)
		return changed, nil
	})
}

// timeOrReply returns the time at which the field expires. If it does not, or is not there, it replies
// that and returns 0.
func (h *hash) timeOrReply(field []byte) int64 {
	e, ok := h.get(field)
	switch {
	case !ok:
		h.r.ReplyInt(noField)
	case e.expireAt == 0:
		h.r.ReplyInt(noExpiry)
	}
	return e.expireAt
}

// hTTL: HTTL key FIELDS numfields field...
func hTTL(r *exec.Request) { getExpiry(r, 1000, false) }

// hPTTL: HPTTL key FIELDS numfields field...
func hPTTL(r *exec.Request) { getExpiry(r, 1, false) }

// hExpireTime: HEXPIRETIME key FIELDS numfields field...
func hExpireTime(r *exec.Request) { getExpiry(r, 1000, true) }

// hPExpireTime: HPEXPIRETIME key FIELDS numfields field...
func hPExpireTime(r *exec.Request) { getExpiry(r, 1, true) }

func getExpiry(r *exec.Request, unit int64, absolute bool) {
	fields, problem := fieldsAt(r.Args, 2, errNumFields)
	if problem != "" {
		refuse(r, problem)
		return
	}
	eachField(r, fields, "", func(h hash, fields [][]byte) (changed bool, err error) {
		for _, field := range fields {
			if at := h.timeOrReply(field); at != 0 {
				h.r.ReplyInt((at - base(r, absolute) + unit - 1) / unit)
			}
		}
		return false, nil
	})
}

// eachField answers a number for each field, in runs: f answers those of a run. event is what f does, if it
// has changed something.
func eachField(r *exec.Request, fields [][]byte, event string, f change) {
	run, ok := r.LockElementRun(fields, 1)
	if !ok {
		return
	}
	defer run.Release()
	start := len(r.Out)
	h, ok := open(r, run.Txn)
	if !ok {
		return
	}
	if !r.Room(exec.LineRoom + (run.End-run.First)*exec.LineRoom/2) {
		return
	}
	if run.IsFirst() {
		r.Out = resp.AppendArray(r.Out, len(fields))
	}
	if err := h.change(run, f, fields[run.First:run.End]); err != nil {
		r.Undo(start)
		r.ReplyValueError(err)
		return
	}
	changed := run.State != nil
	if run.GoesOn(0) {
		return
	}
	if changed {
		r.NotifyLeft(run.Txn, keyevent.Hash, event, r.Args[1])
	}
	run.Whole()
}
