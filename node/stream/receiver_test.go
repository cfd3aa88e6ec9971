package stream

import (
	"errors"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/node/engine"
)

// willing takes everything.
type willing struct{ voids, reopens int }

func (*willing) Admits(uint16) bool         { return true }
func (*willing) Marked(uint16, engine.Mark) {}
func (*willing) Heard()                     {}
func (w *willing) Void()                    { w.voids++ }
func (w *willing) Reopened()                { w.reopens++ }
func (*willing) TakeRefused() []uint16      { return nil }

// A stream without a connection is forgotten after a while, with the large value that it was
// sending. One with a connection is not.
func TestSilentStreamIsForgotten(t *testing.T) {
	cfg := newConfig(t)
	now := time.Duration(0)
	cfg.Monotonic = func() time.Duration { return now }
	all := NewReceivers(cfg, func(string) Taker { return &willing{} })
	piece := make([]byte, 100<<10)
	for _, source := range []string{"gone", "silent"} {
		c, _ := all.Open(source, 9)
		v := &Piece{Section: 7, Key: []byte(source), Type: engine.TypeString, Total: 2 * len(piece), Bytes: piece}
		if answer, err := c.Value(nil, Batch{Seq: 1, Sent: 1, Now: 1}, v); err != nil || string(answer) != ":1\r\n" {
			t.Fatalf("a piece is answered %q, error %v", answer, err)
		}
		if source == "gone" {
			c.Close()
		}
	}
	now = streamMemory / 2
	all.Open("third", 9)
	staged := cfg.Engine.Stats().Staged
	now = 2*streamMemory + 1
	all.Open("third", 9)
	if got := cfg.Engine.Stats().Staged; staged == 0 || got != staged/2 {
		t.Errorf("%d of %d bytes are staged, want half", got, staged)
	}
	for source, last := range map[string]uint64{"gone": 0, "silent": 1} {
		if _, got := all.Open(source, 9); got != last {
			t.Errorf("the last batch of %s is %d, want %d", source, got, last)
		}
	}
	all.Drop()
	if got := cfg.Engine.Stats().Staged; got != 0 {
		t.Errorf("%d bytes are staged, want none", got)
	}
}

// A stream that goes on asks for its Taker again: the node may have forgotten the one of before.
func TestOpenedStreamHasThePresentTaker(t *testing.T) {
	var takers []*willing
	all := NewReceivers(newConfig(t), func(string) Taker {
		takers = append(takers, &willing{})
		return takers[len(takers)-1]
	})
	all.Open("a", 9)
	all.Open("a", 9)
	if len(takers) != 2 || takers[1].reopens != 1 {
		t.Fatalf("%d takers, want 2, of which the last knows that the stream goes on", len(takers))
	}
}

// Only the connection that opened a stream last is listened to, and only until it is closed.
func TestStreamHasOneConnection(t *testing.T) {
	w := &willing{}
	all := NewReceivers(newConfig(t), func(string) Taker { return w })
	first, _ := all.Open("a", 9)
	second, _ := all.Open("a", 9)
	first.Close() // the other one goes on
	for _, test := range []struct {
		c    *Connection
		seq  uint64
		want error
	}{
		{nil, 1, ErrNotOpen}, {first, 1, ErrNotOpen}, {second, 2, ErrGap}, {second, 1, nil}, {second, 1, nil}, {second, 2, nil},
	} {
		if _, err := test.c.Effects(nil, Batch{Seq: test.seq}, nil); !errors.Is(err, test.want) {
			t.Errorf("batch %d fails with %v, want %v", test.seq, err, test.want)
		}
	}
	second.Close()
	if _, err := second.Effects(nil, Batch{Seq: 3}, nil); !errors.Is(err, ErrNotOpen) {
		t.Errorf("a batch on a closed connection fails with %v, want %v", err, ErrNotOpen)
	}
	if w.voids != 1 || w.reopens != 1 {
		t.Errorf("the stream began %d times and went on %d times, want once each", w.voids, w.reopens)
	}
}

// A type that the node does not know is refused by its name, alone or in a unit, and nothing of the
// batch is applied.
func TestUnknownTypeIsRefused(t *testing.T) {
	cfg := newConfig(t)
	owner := newConfig(t).Engine
	all := NewReceivers(cfg, func(string) Taker { return &willing{} })
	c, _ := all.Open("a", 9)
	for name, unit := range map[string]bool{"alone": false, "in a unit": true} {
		owner.OpenFeed(1, func() {})
		owner.Feed(7, 1, engine.Mark{})
		x := owner.Lock(7, 1)
		if unit {
			x.BeginUnit()
		}
		for key, typ := range map[string]engine.Type{"string": engine.TypeString, "hash": engine.TypeHash} {
			if err := x.Set([]byte(key), []byte("v"), typ, 0); err != nil {
				t.Fatal(err)
			}
		}
		x.Unlock()
		effects, _ := owner.Collect(1, 7, nil, 1<<20)
		owner.CloseFeed(1)
		_, err := c.Effects(nil, Batch{Seq: 1, Sent: 1, Now: 1}, effects)
		want := engine.UnknownEffect{Kind: engine.EffectSet, Type: engine.TypeHash}
		if unknown := (engine.UnknownEffect{}); !errors.As(err, &unknown) || unknown != want {
			t.Errorf("%s: error %v, want %v", name, err, want)
		}
		if n := cfg.Engine.Count(7); n != 0 {
			t.Errorf("%s: %d keys are applied", name, n)
		}
	}
}
