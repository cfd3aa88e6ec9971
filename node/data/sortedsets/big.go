package sortedsets

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
)

// The planes and own bytes of a big sorted set.
const (
	index = iota
	leaves
	nodes
	away

	own = shape.TreeOwn
)

// big is a sorted set with parts.
type big struct {
	v    engine.Parts
	tree shape.Tree // of members, by score and name
}

// openBig is the sorted set in a value with parts; as it was when it was pinned if pin is not nil.
// Of a pin, members are not found by name.
func openBig(v engine.Parts, pin *engine.ValuePin) big {
	return big{v, shape.Tree{V: v, Pin: pin, Leaves: leaves, Nodes: nodes, Index: index, Away: away, Items: 1, Ranked: true}}
}

// score is the score of a member.
func (b *big) score(member []byte) (score float64, ok bool) {
	s, ok := b.tree.Lookup(member)
	return scoreOf(s.Rank), ok
}

// A delta has a score as a string: the decimal of an integer, which is short, or the 8 bytes of a
// float64. If these look like a decimal, a byte that does not stands in front.
const (
	maxInteger = 1 << 53
	noDecimal  = 0xff
	scoreRoom  = 24
)

func appendScore(dst []byte, score float64) []byte {
	if n := int64(score); float64(n) == score && -maxInteger < n && n < maxInteger {
		return strconv.AppendInt(dst, n, 10)
	}
	raw := math.Float64bits(score)
	if first := byte(raw); first == '-' || first >= '0' && first <= '9' {
		dst = append(dst, noDecimal)
	}
	return binary.LittleEndian.AppendUint64(dst, raw)
}

// readScore reads a score of a delta.
func readScore(value []byte) (score float64, ok bool) {
	if n, ok := smallInt(value); ok {
		return float64(n), true
	}
	n := len(value)
	if n == 9 && value[0] != noDecimal || n != 8 && n != 9 {
		n, ok := resp.ParseInt(value)
		return float64(n), ok
	}
	score = math.Float64frombits(binary.LittleEndian.Uint64(value[n-8:]))
	return score, !math.IsNaN(score)
}

// note adds to the delta that a member has a score.
func (b *big) note(w *shape.Work, member []byte, score float64) {
	var room [scoreRoom]byte
	w.NoteSet(b.v, member, appendScore(room[:0], score))
}
