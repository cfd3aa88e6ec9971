package lobby

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// visitors let guests in by name, and note who was turned out.
type visitors struct {
	*Lobby
	out []string
}

func (v *visitors) enter(name, address string) *Guest {
	return v.Enter(netip.MustParseAddr(address), func() { v.out = append(v.out, name) })
}

func (v *visitors) want(t *testing.T, out ...string) {
	t.Helper()
	if !slices.Equal(v.out, out) {
		t.Errorf("turned out %q, want %q", v.out, out)
	}
	v.out = nil
}

// TestShares checks that a source over its share displaces its own oldest guest, and that a full
// lobby loses the oldest of all.
func TestShares(t *testing.T) {
	v := &visitors{Lobby: New(4, 2)}
	first := v.enter("a1", "10.0.0.1")
	v.enter("a2", "::ffff:10.0.0.1")
	v.enter("b1", "10.0.0.2")
	v.want(t)
	v.enter("a3", "10.0.0.1")
	v.want(t, "a1")
	first.Leave() // again
	v.enter("c1", "2001:db8::1")
	v.want(t)
	v.enter("d1", "10.0.0.4")
	v.want(t, "a2")
	if v.Len() != 4 {
		t.Errorf("%d guests, want 4", v.Len())
	}
	v.enter("c2", "2001:db8::2:1")
	v.want(t, "b1")
	v.enter("c3", "2001:db8::3:1") // one network
	v.want(t, "c1")
	v.enter("e1", "2001:db8:0:1::1").Leave()
	v.want(t, "a3")
	if !v.TurnOut() {
		t.Error("nobody was turned out")
	}
	v.want(t, "d1")
	if f := v.enter("f1", "10.0.0.6"); !f.TurnOut() || f.TurnOut() {
		t.Error("a guest is turned out once")
	}
	v.want(t, "f1")
	proved := v.enter("g1", "10.0.0.7")
	proved.Leave()
	if proved.TurnOut() {
		t.Error("whoever has left is turned out")
	}
	var none *Guest
	if none.Leave(); none.TurnOut() {
		t.Error("nobody is turned out")
	}
	v.want(t)
}

func TestExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &visitors{Lobby: New(10, 10)}
		v.enter("a", "10.0.0.1")
		b := v.enter("b", "10.0.0.1")
		time.Sleep(5 * time.Second)
		v.enter("c", "10.0.0.1")
		b.Leave()
		v.Expire(5 * time.Second)
		v.want(t)
		time.Sleep(time.Second)
		v.Expire(5 * time.Second)
		v.want(t, "a")
		if v.TurnOut(); v.TurnOut() || len(v.sources) != 0 {
			t.Error("somebody is left")
		}
		v.want(t, "c")
	})
}

// TestManyGuests checks that the bounds hold for any order of coming and going.
func TestManyGuests(t *testing.T) {
	v := &visitors{Lobby: New(100, 10)}
	var guests []*Guest
	for i := range 2000 {
		guests = append(guests, v.enter(fmt.Sprint(i), fmt.Sprintf("10.0.0.%d", i%30)))
		if i%3 == 0 {
			guests[i/2].Leave()
		}
		for source, own := range v.sources {
			if own.Len() > 10 || own.Len() == 0 {
				t.Fatalf("%v has %d guests", source, own.Len())
			}
		}
		if v.Len() > 100 {
			t.Fatalf("%d guests", v.Len())
		}
	}
}
