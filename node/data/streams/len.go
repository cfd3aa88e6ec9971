package streams

import "github.com/dunlin-cache/dunlin/node/exec"

// xLen: XLEN key
func xLen(r *exec.Request) {
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	s, ok := read(r, t, r.Args[1])
	switch {
	case !ok:
	case !s.found:
		r.ReplyInt(0)
	default:
		r.ReplyInt(int64(s.len()))
	}
}
