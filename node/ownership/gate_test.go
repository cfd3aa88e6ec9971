package ownership

import "testing"

func TestGate(t *testing.T) {
	first := table(nil, map[string]int{"a@1": 2, "b@2": all - 2}, "a@1", "b@2")
	v := None.Next(first, "a", 1)
	served := v.WithGained()
	second := *first
	second.Epoch, second.Owner[2] = 2, 0
	gained := served.Next(&second, "a", 1).WithGained() // partition 2, in epoch 2

	f := func(what string, g *Gate, v *View, p uint16, fenced bool, want Verdict) {
		t.Helper()
		if got := g.Verdict(v, p, fenced); got != want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	f("without a table", nil, None, 0, false, Wait)
	f("gained", nil, v, 0, false, Wait)
	f("served", nil, served, 0, false, Serve)
	f("fenced", nil, served, 0, true, Wait)
	f("fenced, another's", nil, served, 2, true, Wait)
	f("another's", nil, served, 2, false, Moved)
	f("a client, gained since", nil, gained, 2, false, Serve)

	g := new(Gate)
	g.Open(served)
	if g.Careful(served, false) || g.Outdated(served) {
		t.Error("an open gate is careful")
	}
	f("the pipe is older than the partition", g, gained, 2, false, Wait)
	f("and than others", g, gained, 0, false, Serve)
	if !g.Careful(gained, false) || !g.Outdated(gained) {
		t.Error("not careful though the pipe is older than a partition")
	}
	g.Retry(1, gained)
	f("the proxy knows an older epoch", g, gained, 2, false, Wait)
	g.Retry(9, served) // no newer one than this node's
	f("nor the epoch of a table that we have not seen", g, gained, 2, false, Wait)
	g.Retry(2, gained)
	f("the proxy knows the epoch", g, gained, 2, false, Serve)

	g.Refused(0, 1)
	f("behind a refused command", g, gained, 0, false, Wait)
	f("of another partition", g, gained, 2, false, Serve)
	if !g.Careful(gained, false) {
		t.Error("not careful though commands were refused")
	}
	g.Retry(0, gained)
	f("after RETRY", g, gained, 0, false, Serve)
	f("after an older RETRY", g, gained, 2, false, Serve)

	g.Begun(0)
	f("behind a write that is executed later", g, gained, 0, false, Wait)
	f("of another partition", g, gained, 2, false, Serve)
	g.Retry(2, gained)
	f("RETRY changes nothing about it", g, gained, 0, false, Wait)
	if !g.Careful(gained, false) || len(g.Resumed(0)) > 0 {
		t.Error("not careful with a write on its way, or commands were refused behind RETRY")
	}
	f("when it is executed", g, gained, 0, false, Serve)
	g.Begun(0, 2)
	f("another partition of the write", g, gained, 2, false, Wait)
	g.Refused(0, 1)
	if refused := g.Resumed(0, 2); len(refused) != 1 || refused[0] != 0 {
		t.Error("commands were refused behind the write")
	}
	f("the write itself", g, gained, 0, false, Serve)
	f("another refused partition", g, gained, 1, false, Wait)
	g.Refused(0)
	f("what was refused behind it", g, gained, 0, false, Wait)
	g.Retry(2, gained)
	f("and after RETRY", g, gained, 0, false, Serve)

	var client *Gate
	client.Refused(0)
	client.Retry(1, gained)
	if client.Careful(gained, false) || client.Outdated(gained) || !client.Careful(gained, true) {
		t.Error("a client's gate remembers")
	}

	lax := &Gate{Broken: Broken{NeverLatch: true}, era: 2}
	lax.Refused(0)
	f("a broken latch", lax, gained, 0, false, Serve)
	f("a broken era", &Gate{Broken: Broken{IgnoreEras: true}}, gained, 2, false, Serve)
}
