package lists

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dunlin-cache/dunlin/node/exec"
)

// sorted is an element of a SORT.
type sorted struct {
	text   []byte
	by     []byte // the value that BY names; nil: there is none
	weight float64
}

// longestWeight is how many bytes a text may have that is a number.
const longestWeight = 4 << 10

// weigh sets the weight of an element by a text. It reports false if that is no number.
func (x *sorted) weigh(text []byte) (ok bool) {
	x.weight, ok = parseWeight(text)
	return ok
}

// parseWeight parses a number as C's strtod does: leading space, hexadecimal digits and infinity
// are allowed, and a zero byte ends the text. The empty text is 0.
func parseWeight(text []byte) (weight float64, ok bool) {
	if end := bytes.IndexByte(text[:min(len(text), longestWeight)], 0); end >= 0 {
		text = text[:end]
	}
	switch {
	case len(text) == 0:
		return 0, true
	case len(text) > longestWeight:
		return 0, false
	}
	number := strings.ToLower(string(bytes.TrimLeft(text, " \t\n\v\f\r")))
	if strings.Contains(number, "_") || strings.Contains(number, "nan") {
		return 0, false
	}
	if strings.Contains(number, "0x") && !strings.Contains(number, "p") {
		number += "p0"
	}
	weight, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, false
	}
	// C reports a range error for what rounds to less than the smallest normal number.
	const smallest = 0x1p-1022
	tiny := weight == 0 && strings.ContainsAny(strings.SplitN(number, "e", 2)[0], "123456789")
	return weight, !tiny && (weight == 0 || math.Abs(weight) >= smallest)
}

// compare orders two elements as Redis does.
func (o *sortOptions) compare(a, b *sorted) (c int) {
	switch {
	case !o.alpha:
		c = cmp.Or(cmp.Compare(a.weight, b.weight), bytes.Compare(a.text, b.text))
	case o.by == nil:
		c = bytes.Compare(a.text, b.text)
	case a.by == nil || b.by == nil: // who has none comes first
		c = boolOrder(a.by != nil, b.by != nil)
	default:
		c = bytes.Compare(a.by, b.by)
	}
	if o.desc {
		return -c
	}
	return c
}

func boolOrder(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// order sorts the elements. It gives up soon after ctx ends: then the order means nothing.
func (o *sortOptions) order(ctx context.Context, all []sorted) {
	const look = 4096 // comparisons, or pages of what is compared, between two looks at ctx
	left, ended := look, false
	slices.SortStableFunc(all, func(a, b sorted) int {
		if left -= 1 + min(len(a.text)+len(a.by), len(b.text)+len(b.by))>>12; left <= 0 {
			left, ended = look, exec.Step(ctx) != nil
		}
		if ended {
			return 0
		}
		return o.compare(&a, &b)
	})
}
