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
	blocks = iota
	leaves
	nodes
	away

	own = shape.TableOwn + shape.TreeOwn
)

// big is a sorted set with parts.
type big struct {
	v     engine.Parts
	table shape.Table // member, score
	tree  shape.Tree
}

// openBig is the sorted set in a value with parts; as it was when it was pinned if pin is not nil.
func openBig(v engine.Parts, pin *engine.ValuePin) big {
	return big{
		v:     v,
		table: shape.Table{V: v, Pin: pin, Blocks: blocks, Away: away, Items: 2},
		tree:  shape.Tree{V: v, Pin: pin, Leaves: leaves, Nodes: nodes, Away: away, Own: shape.TableOwn, Items: 1, Ranked: true},
	}
}

// score is the score of a member.
func (b *big) score(member []byte) (score float64, ok bool) {
	e, ok := b.table.Get(member)
	if !ok {
		return 0, false
	}
	return readScore(e.Value), true
}

// A table keeps a score as a string: the decimal of an integer, which takes few bytes there, or the
// 8 bytes of a float64. If these look like a decimal, a byte that does not stands in front.
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

func readScore(item shape.Item) float64 {
	if n, ok := item.Int(); ok {
		return float64(n)
	}
	var room [scoreRoom]byte
	raw := item.Append(room[:0])
	return math.Float64frombits(binary.LittleEndian.Uint64(raw[len(raw)-8:]))
}

// parseStored is readScore of bytes from elsewhere.
func parseStored(value []byte) (score float64, ok bool) {
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
