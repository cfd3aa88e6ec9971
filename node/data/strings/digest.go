package strings

import (
	"context"
	"encoding/binary"
	"encoding/hex"

	"github.com/zeebo/xxh3"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// digestLen is the length of a digest: XXH3 with 64 bits, in hexadecimal.
const digestLen = 16

// scanFrom is how many bytes of a value a command reads on the loop, under the shard's lock: about
// 0.05 ms. A goroutine reads longer ones.
const scanFrom = 256 << 10

// digest: DIGEST key
func digest(r *exec.Request) {
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	item, found, ok := r.ReadString(t, r.Args[1])
	if !ok {
		return
	}
	if !found {
		r.ReplyNull()
		return
	}
	value := item.Value()
	if len(value) > scanFrom {
		if pin, ok := t.Pin(item); ok {
			r.Host.AnswerLater(func(ctx context.Context) []byte {
				defer pin.Release()
				sum, _ := digestOf(ctx, pin.Value())
				return resp.AppendBulk(nil, sum[:])
			})
			return
		}
	}
	sum, _ := digestOf(context.Background(), value)
	r.ReplyBulk(sum[:])
}

// digestOf returns the digest of a value, in steps if it is long. It stops with ctx's error when ctx ends.
func digestOf(ctx context.Context, value []byte) (digest [digestLen]byte, err error) {
	var sum uint64
	if len(value) <= exec.RewriteStep {
		sum = xxh3.Hash(value)
	} else {
		h := xxh3.New()
		for len(value) > 0 && err == nil {
			n := min(len(value), exec.RewriteStep)
			_, _ = h.Write(value[:n]) // it cannot fail
			value, err = value[n:], exec.Step(ctx)
		}
		sum = h.Sum64()
	}
	var raw [8]byte
	binary.BigEndian.PutUint64(raw[:], sum)
	hex.Encode(digest[:], raw[:])
	return digest, err
}
