package streams

import (
	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// groupOptions are those of XGROUP CREATE and SETID.
type groupOptions struct {
	makes bool  // MKSTREAM
	read  int64 // ENTRIESREAD
	args  int   // so many there are
}

func parseGroupOptions(args [][]byte, create bool) (o groupOptions, problem string) {
	o.read, o.args = readUnknown, len(args)-5
	for i := 5; i < len(args); i++ {
		switch {
		case create && exec.Is(args[i], "MKSTREAM"):
			o.makes = true
		case exec.Is(args[i], "ENTRIESREAD") && i+1 < len(args):
			i++
			if o.read, problem = parseCount(args[i]); problem == "" && o.read < 0 && o.read != readUnknown {
				problem = ErrEntriesRead
			}
			if problem != "" {
				return o, problem
			}
		default:
			return o, command.WrongSubArgs(args)
		}
	}
	return o, ""
}

// readOf is ENTRIESREAD for a stream: it says no more than that all entries were read.
func (o *groupOptions) readOf(i info) int64 {
	if o.read != readUnknown && uint64(o.read) > i.added {
		return int64(i.added)
	}
	return o.read
}

// xGroupCreate: XGROUP CREATE key group id | $ [MKSTREAM] [ENTRIESREAD entries]
func xGroupCreate(r *exec.Request) {
	o, problem := parseGroupOptions(r.Args, true)
	if problem != "" {
		r.Fail(problem)
		return
	}
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	s, ok := open(r, t, r.Args[2])
	if !ok {
		return
	}
	if !s.found && !o.makes {
		r.Fail(ErrGroupNeedsKey)
		return
	}
	if o.args > 3 {
		r.Fail(command.WrongSubArgs(r.Args))
		return
	}
	var i info
	if s.found {
		i = s.info()
	}
	last := i.last
	if string(r.Args[4]) != "$" {
		if last, ok = idArg(r, r.Args[4]); !ok {
			return
		}
	}
	name := r.Args[3]
	if s.found {
		if _, found := s.group(name); found {
			r.Fail(ErrBusyGroup)
			return
		}
	}
	if !s.closeOrFail(len(r.Out), s.makeGroup(name, last, o.readOf(i))) {
		return
	}
	r.Notify(keyevent.Stream, "xgroup-create", s.key)
	r.ReplyOK()
}

// makeGroup makes a group, and the stream if there is none. After an error there is neither.
func (s *stream) makeGroup(name []byte, last ID, read int64) error {
	isNew := !s.found
	_, err := s.createGroup(name, last, read)
	if err != nil && isNew && s.found {
		s.drop()
	}
	return err
}

// xGroupSetID: XGROUP SETID key group id | $ [ENTRIESREAD entries]
func xGroupSetID(r *exec.Request) {
	o, problem := parseGroupOptions(r.Args, false)
	if problem != "" {
		r.Fail(problem)
		return
	}
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	s, g, ok := openGroup(r, t)
	if !ok {
		return
	}
	if o.args > 2 {
		r.Fail(command.WrongSubArgs(r.Args))
		return
	}
	i := s.info()
	last := i.last
	if string(r.Args[4]) != "$" {
		if last, ok = parseAnyID(r.Args[4], 0); !ok {
			r.Fail(ErrID)
			return
		}
	}
	g.last, g.read = last, o.readOf(i)
	if !s.closeOrFail(len(r.Out), s.setGroup(&g)) {
		return
	}
	r.Notify(keyevent.Stream, "xgroup-setid", s.key)
	r.ReplyOK()
}
