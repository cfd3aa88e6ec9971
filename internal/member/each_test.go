package member

import (
	"bytes"
	"errors"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// TestEachTakesRoom: the memory of an answer is taken as it comes, all of it and no more than twice its length.
func TestEachTakesRoom(t *testing.T) {
	var covered ring.PartitionSet
	covered.Add(7)
	text := bytes.Repeat([]byte("x"), 12<<20)
	answer := resp.AppendBulk(AppendCovered(nil, &covered), text)
	p := answering(t, len(answer), answer)
	taken := 0
	set, reply, err := p.Each(AppendVerb(nil, VerbEach, 0), func(bytes int) bool {
		if taken+bytes > MaxReply {
			return false
		}
		taken += bytes
		return true
	})
	if err != nil || *set != covered {
		t.Fatalf("covers 7: %v, %v", set != nil && set.Has(7), err)
	}
	if got, ok := resp.DecodeBulk(reply); !ok || len(got) != len(text) {
		t.Errorf("the reply has %d bytes", len(got))
	}
	if cap(reply) > taken {
		t.Errorf("%d bytes were taken for %d", taken, cap(reply))
	}
	p = answering(t, len(answer), answer)
	if _, _, err := p.Each(AppendVerb(nil, VerbEach, 0), func(int) bool { return false }); !errors.Is(err, ErrNoRoom) {
		t.Errorf("without room: %v", err)
	}
}
