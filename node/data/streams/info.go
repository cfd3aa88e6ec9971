package streams

import (
	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// openInfo opens the stream that XINFO describes. If ok is false, the command is answered.
func openInfo(r *exec.Request, t engine.Txn) (s stream, ok bool) {
	if s, ok = read(r, t, r.Args[2]); ok && !s.found {
		r.Fail(ErrNoKey)
		ok = false
	}
	return s, ok
}

// xInfoStream: XINFO STREAM key [FULL [COUNT count]]
func xInfoStream(r *exec.Request) {
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	s, ok := openInfo(r, t)
	if !ok {
		return
	}
	options := r.Args[3:]
	if len(options) == 0 {
		s.reply(&streamInfo{version: r.Version()})
		return
	}
	count, problem := parseFull(r.Args)
	if problem != "" {
		r.Fail(problem)
		return
	}
	s.reply(&fullInfo{version: r.Version(), count: count})
}

// defaultFull is how many entries, and pending entries of a group or consumer, XINFO STREAM FULL answers.
const defaultFull = 10

// parseFull parses FULL and COUNT. A count of 0 is any number.
func parseFull(args [][]byte) (count int, problem string) {
	options := args[3:]
	switch {
	case len(options) != 1 && len(options) != 3, !exec.Is(options[0], "FULL"):
		return 0, command.WrongSubArgs(args)
	case len(options) == 1:
		return defaultFull, ""
	case !exec.Is(options[1], "COUNT"):
		return 0, command.WrongSubArgs(args)
	}
	n, problem := parseCount(options[2])
	if n < 0 {
		n = defaultFull
	}
	return int(n), problem
}

// streamInfo is the reply to XINFO STREAM.
type streamInfo struct {
	version resp.Version
	part    int // 0: the figures, then the first and the last entry
	at      spot
}

func (a *streamInfo) rewind() { a.part, a.at = 0, spot{} }

func (a *streamInfo) next(v *view, w *slice) (done bool) {
	if a.part == 0 {
		w.Bytes = resp.AppendMap(w.Bytes, a.version, 10)
		w.figures(v, v.info())
		w.word("groups")
		w.int(int64(v.groups()))
		a.part++
	}
	for ; a.part < 3; a.part++ {
		if whole := a.edge(v, w); !whole {
			return false
		}
	}
	return true
}

// edge appends the first or the last entry.
func (a *streamInfo) edge(v *view, w *slice) (whole bool) {
	any := false
	visit := func(id ID, e entry) bool {
		any, whole = true, w.entry(id, &e, &a.at)
		return false
	}
	first := a.part == 1
	switch {
	case a.at != spot{}:
	case first:
		w.word("first-entry")
	default:
		w.word("last-entry")
	}
	if first {
		v.each(minID, visit)
	} else {
		v.eachBack(maxID, visit)
	}
	if !any {
		w.Bytes = resp.AppendNull(w.Bytes, a.version)
	}
	return whole || !any
}

func (a *streamInfo) appendHead(dst []byte) []byte { return dst }

// figures appends what both forms of XINFO STREAM begin with. Redis keeps entries in a radix tree of blocks:
// its keys are the blocks, of which it has one node more.
func (w *slice) figures(v *view, i info) {
	blocks := v.blocks()
	w.word("length")
	w.int(int64(v.len()))
	w.word("radix-tree-keys")
	w.int(int64(blocks))
	w.word("radix-tree-nodes")
	w.int(int64(blocks + 1))
	w.word("last-generated-id")
	w.id(i.last)
	w.word("max-deleted-entry-id")
	w.id(i.maxDeleted)
	w.word("entries-added")
	w.int(int64(i.added))
	w.word("recorded-first-entry-id")
	w.id(i.first)
}

// blocks returns how many blocks the entries are in.
func (v *view) blocks() int {
	switch {
	case v.isBig && v.big.pin != nil:
		return v.big.pin.Count(planeBlocks)
	case v.isBig:
		return v.big.v.Count(planeBlocks)
	case v.len() > 0:
		return 1
	}
	return 0
}
