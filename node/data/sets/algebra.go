package sets

import (
	"bytes"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// sInter: SINTER key...
func sInter(r *exec.Request) { combine(r, inter) }

// sUnion: SUNION key...
func sUnion(r *exec.Request) { combine(r, union) }

// sDiff: SDIFF key...
func sDiff(r *exec.Request) { combine(r, diff) }

func combine(r *exec.Request, op operation) {
	run(r, plan{op: op, keys: r.Args[1:]}, &members{heap: r.Heap})
}

// sInterStore: SINTERSTORE destination key...
func sInterStore(r *exec.Request) { combineStore(r, inter) }

// sUnionStore: SUNIONSTORE destination key...
func sUnionStore(r *exec.Request) { combineStore(r, union) }

// sDiffStore: SDIFFSTORE destination key...
func sDiffStore(r *exec.Request) { combineStore(r, diff) }

func combineStore(r *exec.Request, op operation) {
	run(r, plan{op: op, keys: r.Args[2:]}, &stored{exec.Builder{Type: &setType}, bytes.Clone(r.Args[1])})
}

// sInterCard: SINTERCARD numkeys key... [LIMIT limit]
func sInterCard(r *exec.Request) {
	n, ok := resp.ParseInt(r.Args[1])
	switch {
	case !ok || n < 1:
		r.Fail(errNumKeys)
		return
	case n > int64(len(r.Args)-2):
		r.Fail(errFewKeys)
		return
	}
	p := plan{op: inter, keys: r.Args[2 : 2+n]}
	for i := 2 + int(n); i < len(r.Args); i += 2 {
		if !exec.Is(r.Args[i], "LIMIT") || i+1 == len(r.Args) {
			r.Fail(exec.ErrSyntax)
			return
		}
		most, ok := resp.ParseInt(r.Args[i+1])
		if !ok || most < 0 {
			r.Fail(errLimit)
			return
		}
		p.most = int(most)
	}
	run(r, p, number{})
}
