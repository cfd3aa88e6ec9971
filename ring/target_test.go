package ring

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// targets remembers what mustTarget has built; the tests of a package run one after
// another.
var targets = make(map[string][]uint16)

func mustTarget(t *testing.T, ids []string) []uint16 {
	t.Helper()
	key := strings.Join(ids, " ")
	if targets[key] == nil {
		owner, err := Target(ids)
		if err != nil {
			t.Fatal(err)
		}
		targets[key] = owner
	}
	return targets[key]
}

// moved returns the share of partitions whose owner's id differs.
func moved(aIDs []string, a []uint16, bIDs []string, b []uint16) float64 {
	n := 0
	for p := range a {
		if aIDs[a[p]] != bIDs[b[p]] {
			n++
		}
	}
	return float64(n) / Partitions
}

func TestTargetMovesLittle(t *testing.T) {
	check := func(from, to, samples int, most float64) {
		t.Helper()
		var sum float64
		for i := range samples {
			a, b := namedIDs(i, from), namedIDs(i, to)
			sum += moved(a, mustTarget(t, a), b, mustTarget(t, b))
		}
		mean := sum / float64(samples)
		t.Logf("%d -> %d nodes: %.1f %% move", from, to, 100*mean)
		if mean > most {
			t.Errorf("%d -> %d nodes: %.3f of the partitions move, want at most %.3f", from, to, mean, most)
		}
	}
	check(3, 4, 5, 0.27)
	check(3, 2, 5, 0.35)
	check(3, 5, 5, 0.42)
	check(10, 11, 2, 0.095)
	check(20, 21, 1, 0.052)
}

// namedIDs returns n ids as one of many clusters might name them.
func namedIDs(cluster, n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("cache%d-%03d", cluster, i)
	}
	return ids
}

func TestTargetIsBalanced(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 5, 7, 10, 20} {
		counts := make([]int, n)
		for _, o := range mustTarget(t, sampleIDs(n)) {
			counts[o]++
		}
		mean := float64(Partitions) / float64(n)
		// The bound is rounded up to whole partitions.
		if most := slices.Max(counts); float64(most) > mean*loadBound+1 {
			t.Errorf("%d nodes: one has %d partitions, %.3f times the mean", n, most, float64(most)/mean)
		}
	}
}

func TestTargetRefusesBadIDs(t *testing.T) {
	check := func(ids ...string) {
		t.Helper()
		if _, err := Target(ids); err == nil {
			t.Errorf("Target(%q) does not fail", ids)
		}
	}
	check()
	check("b", "a")
	check("a", "a")
	if _, err := Target(sampleIDs(MaxNodes + 1)); err == nil {
		t.Error("Target takes any number of nodes")
	}
}

// TestFollowersAreHeirs holds the quick walk against the definition: the owner in
// the ring, built by Target, without the owner.
func TestFollowersAreHeirs(t *testing.T) {
	for _, n := range []int{2, 3, 5, 10} {
		ids := sampleIDs(n)
		owner := [Partitions]uint16(mustTarget(t, ids))
		follower := followers(ids, &owner)
		for i := range ids {
			rest := slices.Delete(slices.Clone(ids), i, i+1)
			heirs := mustTarget(t, rest)
			for p, o := range owner {
				if int(o) == i && ids[follower[p]] != rest[heirs[p]] {
					t.Fatalf("%d nodes: follower of partition %d of %s is %s, want %s",
						n, p, ids[i], ids[follower[p]], rest[heirs[p]])
				}
			}
		}
	}
}

// The fingerprint may change only together with the decision that old and new
// builds cannot form one cluster.
func TestFingerprintIsPinned(t *testing.T) {
	if got, want := Fingerprint(), uint32(0x5b64c04e); got != want {
		t.Errorf("Fingerprint() = %#08x, want %#08x", got, want)
	}
}

func sampleIDs(n int) []string { return namedIDs(0, n) }
