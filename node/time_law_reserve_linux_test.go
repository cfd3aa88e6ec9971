//go:build linux && !race

package node

import "testing"

// TestTimeLawOfReservations: what is executed in a partition that is reserved for another node's
// command takes no longer than other commands. The end of the connection undoes what is not
// released.
func TestTimeLawOfReservations(t *testing.T) {
	if !locksAreTimed {
		t.Skip("locks are not timed")
	}
	rig := newLawRig(t, startLeveled)
	for _, pattern := range []string{
		"LINDEX {k}list 15000", "LINDEX {k}llong 0", "LLEN {k}list", "LPUSH {k}list WORD", "RPUSH {k}new WORD", "LPOP {k}list", "RPOP {k}llong",
		"SISMEMBER {k}set WORD", "SCARD {k}set", "SADD {k}set WORD", "SREM {k}set 1", "SREM {k}members 1",
		"EXISTS ( 500x {k}# )", "MSETNX ( 500x {k}a# 1 )", "MSETNX ( 15x {k}a# WORD )",
	} {
		args := requestOf("DUNLIN RESERVE 0 "+pattern, manyWords)
		rig.judge("RESERVE: "+pattern, func() cost {
			rig.fill()
			rig.fillLong(dial(t, rig.node.Addr()), pattern)
			return rig.once("client", args)
		})
		eventually(t, "nothing is reserved", func() bool { return len(rig.node.engine.Holds()) == 0 })
	}
}
