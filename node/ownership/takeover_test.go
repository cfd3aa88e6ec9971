package ownership

import "testing"

// TestNothingIsClaimedByAnOldTable: a node that has acknowledged a newer table may know that it
// drops this node. The table that arrives next may be older still.
func TestNothingIsClaimedByAnOldTable(t *testing.T) {
	for _, broken := range []bool{false, true} {
		r := newRig(t, Broken{ClaimOutpaced: broken})
		second := table(r.first(), map[string]int{"a@1": all}, "a@1", "b@2")
		third := table(second, map[string]int{"a@1": all}, "a@1", "b@2")
		fourth := table(third, map[string]int{"b@2": all}, "b@2")
		r.install(second)
		r.want("obey:2/3096+1000 barrier hand review settle:1000 refeed ask:b@2/0")
		r.obeyed("b@2", 4)
		if broken {
			r.want("settle:0 claim barrier refeed obey:2/4096+0")
			continue
		}
		r.want("")
		r.install(third)
		r.want("obey:3/3096+1000 barrier hand review settle:1000 refeed cancel")
		r.install(fourth)
		r.want("obey:4/0+0 barrier hand:away review:away settle:0 refeed cancel")
	}
}

// TestDeadNodesHoldNobodyUp: a table that died with the only node that had it is not waited for.
func TestDeadNodesHoldNobodyUp(t *testing.T) {
	r := newRig(t)
	second := table(r.first(), map[string]int{"a@1": all}, "a@1", "b@2")
	r.install(second)
	r.want("obey:2/3096+1000 barrier hand review settle:1000 refeed ask:b@2/0")
	r.obeyed("b@2", 9)
	r.want("")
	r.install(table(second, map[string]int{"a@1": all}, "a@1"))
	r.want("obey:3/3096+1000 barrier hand review settle:1000 refeed cancel ask:b@2/0")
	r.m.Failed(r.now, r.asks["b@2"], true)
	r.want("settle:0 claim barrier refeed obey:3/4096+0")
}
