package keys

import (
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// memoryUsage: MEMORY USAGE key [SAMPLES count]. Values have no parts that could be sampled yet.
func memoryUsage(r *exec.Request) {
	for options := r.Args[3:]; len(options) > 0; options = options[2:] {
		if len(options) < 2 || !exec.Is(options[0], "SAMPLES") {
			r.Fail(exec.ErrSyntax)
			return
		}
		n, ok := resp.ParseInt(options[1])
		if !ok {
			r.Fail(exec.ErrNotInteger)
			return
		}
		if n < 0 {
			r.Fail(exec.ErrSyntax)
			return
		}
	}
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	item, found := t.Peek(r.Args[2])
	if !found {
		r.ReplyNull()
		return
	}
	bytes, _ := r.Types.Of(item).Footprint(t, r.Args[2])
	r.ReplyInt(bytes)
}
