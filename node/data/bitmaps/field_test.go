package bitmaps

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/bitstring"
)

// TestFieldOps compares with arithmetic on numbers of any size.
func TestFieldOps(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	operands := []int64{0, 1, -1, math.MaxInt64, math.MinInt64, math.MaxInt64 - 1, math.MinInt64 + 1}
	for range 50_000 {
		op := fieldOp{kind: fieldOpKind(r.IntN(3)), signed: r.IntN(2) == 0, overflow: overflow(r.IntN(3)), at: r.Uint64N(20)}
		op.width = 1 + r.UintN(63)
		if op.signed {
			op.width = 1 + r.UintN(64)
		}
		op.operand = operands[r.IntN(len(operands))]
		if r.IntN(2) == 0 {
			op.operand = int64(r.Uint64()) >> r.IntN(64)
		}
		b := make([]byte, 12)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		old := op.signExtend(bitstring.Field(b, op.at, op.width))
		reply, ok := op.execute(b)
		now := op.signExtend(bitstring.Field(b, op.at, op.width))
		if want := oracleField(&op, old); fmt.Sprint(reply, ok, now) != want {
			t.Fatalf("seed %d: %+v of %d: %d, %t, and %d is there; want %s", seed, op, old, reply, ok, now, want)
		}
	}
}

// oracleField is what an operation answers, whether it is done, and what is in the field then.
func oracleField(op *fieldOp, old int64) string {
	if op.kind == getField {
		return fmt.Sprint(old, true, old)
	}
	least, size := new(big.Int), new(big.Int).Lsh(big.NewInt(1), op.width)
	if op.signed {
		least.Rsh(size, 1).Neg(least)
	}
	most := new(big.Int).Sub(new(big.Int).Add(least, size), big.NewInt(1))
	sum := big.NewInt(op.operand)
	if op.kind == incrField {
		sum.Add(sum, big.NewInt(old))
	}
	if sum.Cmp(least) < 0 || sum.Cmp(most) > 0 {
		switch {
		case op.overflow == refuse:
			return fmt.Sprint(0, false, old)
		case op.overflow == wrap:
			sum.Sub(sum, least).Mod(sum, size).Add(sum, least)
		case sum.Cmp(most) > 0, op.kind == setField && !op.signed: // Redis takes a negative number for a large one
			sum = most
		default:
			sum = least
		}
	}
	if op.kind == setField {
		return fmt.Sprint(old, true, sum)
	}
	return fmt.Sprint(sum, true, sum)
}
