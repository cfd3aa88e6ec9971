//go:build linux && !race

package node

import (
	"testing"
	"time"
)

// millionBound is what a turn may take for a request of a million arguments: what the law allows, and room for a busy
// machine. What does something for all of them at once takes 3 to 9 ms.
const millionBound = 2 * time.Millisecond

// TestTimeLawOfAMillion: nor does a client's request of a million arguments keep a loop, or a shard locked. TestTimeLaw
// asks for fewer, of which all together cost little.
func TestTimeLawOfAMillion(t *testing.T) {
	if !locksAreTimed {
		t.Skip("needs the build tag checked")
	}
	rig := newLawRig(t, startLeveled)
	rig.turnMost = millionBound
	for _, pattern := range []string{
		"BITFIELD {k}w ( GET u63 # )",
		"BITFIELD {k}w ( SET u8 # 1 )",
		"BITFIELD {k}w ( GET u63 # ) wrong",
		"BITOP OR {k}d ( {k}# )",
		"BITOP ONE {k}d ( {k}n )",
		"BITOP XOR {k}d ( {k}l ) {k}hash",
		"DEL ( {k}# )",
		"HSET {k}new ( # v )",
		"LPUSH {k}new ( # )",
		"MGET ( {k}n )",
		"MSETEX 499998 ( {k}a v ) EX 100",
		"PFADD {k}h ( # )",
		"SADD {k}new ( # )",
		"ZADD {k}newz ( # m# )",
	} {
		args := requestOf(pattern, 1_000_000)
		rig.judge(pattern, func() cost {
			rig.fill()
			return rig.once("client", args)
		})
	}
}
