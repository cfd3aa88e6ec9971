package measure

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/figures"
)

// TestHotSketch: among many keys, those are found that are used most, with about the rate that they
// have; a use by all alike makes none hot; what is no longer used fades.
func TestHotSketch(t *testing.T) {
	h := NewHotSketch(0)
	for i := range 20_000 {
		h.Note(0, fmt.Appendf(nil, "cold:%d", i))
	}
	report := func(at time.Duration) []figures.KeyFigure {
		var top figures.KeyFigures
		h.Report(at, &top)
		return top.Top()
	}
	if got := report(time.Second); len(got) > 0 {
		t.Errorf("keys used once each are hot: %v", got)
	}
	h = NewHotSketch(0)
	for i := range 20_000 {
		h.Note(0, fmt.Appendf(nil, "cold:%d", i))
		if i%10 == 0 {
			h.Note(0, []byte("hot"))
		}
		if i%100 == 0 {
			h.Note(0, []byte("warm"))
		}
	}
	got := report(10 * time.Second)
	if len(got) != 2 || got[0].Key != "hot" || got[1].Key != "warm" {
		t.Fatalf("%v are hot, want hot and warm", got)
	}
	if want := int64(2000 * SampleInputs / 10); got[0].N > want || got[0].N < want*9/10 {
		t.Errorf("%d uses a second, want about %d", got[0].N, want)
	}
	for at := hotHalf; at < 12*hotHalf; at += hotHalf {
		h.Fade(at)
	}
	if got := report(12 * hotHalf); len(got) > 0 {
		t.Errorf("%v are hot long after", got)
	}
}

// TestUses: databases have shares of the commands, of which new ones count more.
func TestUses(t *testing.T) {
	var none Uses
	if got := none.Share(0); got != 0 {
		t.Errorf("the share is %v without commands", got)
	}
	h := NewHotSketch(0)
	share := func() float64 {
		var all Uses
		h.AddUses(&all)
		h.AddUses(&all) // of another loop
		return all.Share(3)
	}
	for range 10 {
		h.NoteCommand(0)
		h.NoteCommand(3)
	}
	if got := share(); got != 0.5 {
		t.Errorf("the share is %v, want 0.5", got)
	}
	h.Fade(hotHalf)
	for range 10 {
		h.NoteCommand(3)
	}
	if got := share(); got != 0.75 {
		t.Errorf("the share is %v, want 0.75", got)
	}
}

// TestHotSketchOfManyKeys: a command of very many keys costs what one of few does, and still shows
// what such commands use again and again.
func TestHotSketchOfManyKeys(t *testing.T) {
	h := NewHotSketch(0)
	noted := func() (n uint32) {
		for i := range h.entries {
			n += h.entries[i].count
		}
		return n
	}
	mget := func(keys int, name func(i int) string) {
		var args [][]byte
		var places []int
		for i := range keys {
			args, places = append(args, []byte(name(i))), append(places, i)
		}
		h.NoteSome(0, args, places)
	}
	for _, keys := range []int{0, 1, 3, hotOfCommand} {
		before := noted()
		mget(keys, func(i int) string { return fmt.Sprint("few:", i) })
		if got := noted() - before; got != uint32(keys) {
			t.Errorf("of %d keys %d are noted", keys, got)
		}
	}
	h = NewHotSketch(0)
	for command := range 100 {
		before := noted()
		mget(20*hotOfCommand+1, func(i int) string {
			if i%10 == 7 {
				return "hot"
			}
			return fmt.Sprintf("cold:%d:%d", command, i)
		})
		if got := noted() - before; got == 0 || got > hotOfCommand {
			t.Fatalf("%d keys are noted, want %d at most", got, hotOfCommand)
		}
	}
	var top figures.KeyFigures
	h.Report(time.Second, &top)
	if list := top.Top(); len(list) != 1 || list[0].Key != "hot" {
		t.Errorf("%v are hot, want the one that they have again and again", list)
	}
}

func TestHotSketchAllocatesNothing(t *testing.T) {
	h, i := NewHotSketch(0), 0
	keys := [][]byte{[]byte("a"), []byte(strings.Repeat("long", 100)), []byte("c")}
	if got := testing.AllocsPerRun(1000, func() { i++; h.Note(0, keys[i%3]) }); got > 0 {
		t.Errorf("%v allocations for a key, want 0", got)
	}
}
