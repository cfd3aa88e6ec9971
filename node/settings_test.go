package node

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/ring"
)

// oneDocument is a SettingsSource with a document that nobody changes.
type oneDocument struct{ s *ring.Settings }

func (d oneDocument) Coordinator() (m ring.Member, self, ok bool) { return ring.Member{}, false, false }

func (d oneDocument) Configure(context.Context, map[string]string) error {
	return errors.New("not used")
}

func (d oneDocument) ConfigureFrom(context.Context, [32]byte, map[string]string) error {
	return errors.New("not used")
}

func (d oneDocument) SettingsSoon() bool { return false }

func (d oneDocument) Settings(hash []byte) *ring.Settings {
	if id := d.s.ID(); string(id.Hash[:]) == string(hash) {
		return d.s
	}
	return nil
}

// changes is a SettingsSource of a coordinator. Each change brings a new view, as a table with a
// new document does.
type changes struct {
	oneDocument
	coordinator ring.Member
	self        bool
	changed     func(ctx context.Context)
}

func (c *changes) Coordinator() (m ring.Member, self, ok bool) { return c.coordinator, c.self, true }

func (c *changes) Configure(ctx context.Context, _ map[string]string) error {
	c.changed(ctx)
	return nil
}

// TestSetPartOnce: a node sets the cluster's parameters once for a proxy's CONFIG SET, although the
// view changes meanwhile. The answer covers what the node serves before and after the change, and
// partition 0 even if it is lost: its owner sets them for all.
func TestSetPartOnce(t *testing.T) {
	for lost := range uint16(2) {
		n := startBare(t)
		setView(n, sharedView(n, "theirs"))
		var count atomic.Int32
		n.SetSettings(&changes{self: true, changed: func(context.Context) {
			count.Add(1)
			v := sharedView(n, "theirs")
			v.Table.Owner[lost], v.Standing[lost] = 1, ownership.Foreign
			setView(n, v)
		}})
		c := openPipeTo(t, n, 1, 0, "large", 1, 2)
		covered, reply := c.each(&allPartitions, "CONFIG SET timeout 77 slowlog-max-len 9")
		if got := inText(reply); got != "OK" || count.Load() != 1 {
			t.Errorf("CONFIG SET answers %s and sets %d times, want OK and once", got, count.Load())
		}
		want := allPartitions
		want.Remove(partitionOf("theirs"))
		if lost != 0 {
			want.Remove(lost)
		}
		if covered != want {
			t.Errorf("CONFIG SET covers the wrong partitions when partition %d is lost", lost)
		}
	}
}

// TestCoordinatorAnswersFirst: the coordinator gives up on late members before the node that has
// asked it gives up on the coordinator.
func TestCoordinatorAnswersFirst(t *testing.T) {
	asking, asked := startNode(t), startNode(t, func(c *Config) { c.ID = "b" })
	asks := make(chan time.Duration, 1) // with what is left of the deadline
	asked.SetSettings(&changes{self: true, changed: func(ctx context.Context) {
		deadline, _ := ctx.Deadline()
		asks <- time.Until(deadline)
	}})
	asking.SetSettings(&changes{coordinator: memberOf(asked)})
	dial(t, asking.Addr()).want("CONFIG SET timeout 77", "OK")
	if left := came(t, "the coordinator is asked", asks); left <= 0 || left > settingsPatience-400*time.Millisecond {
		t.Errorf("the coordinator waits for %v, the node that asks it for %v", left, settingsPatience)
	}
}

// TestLargestSettings: a node sends a settings document of any size, from the bytes that
// the document keeps.
func TestLargestSettings(t *testing.T) {
	n := startNode(t)
	values := map[string]string{"x": strings.Repeat("v", ring.MaxSettingsBytes-3<<20)}
	for i := range 300 {
		values[fmt.Sprint("function/", i)] = strings.Repeat("f", 30*i)
	}
	s, err := (*ring.Settings)(nil).With(1, values)
	if err != nil {
		t.Fatal(err)
	}
	n.SetSettings(oneDocument{s})
	for range 2 { // heldPins are reused
		got, err := member.FetchSettings(t.Context(), nil, n.Addr(), nil, s.ID())
		if err != nil || got.ID() != s.ID() || !got.Has(values) {
			t.Fatalf("FetchSettings = version %d, %v; want version 1", got.ID().Version, err)
		}
	}
	missing := ring.SettingsID{Version: 2}
	if got, err := member.FetchSettings(t.Context(), nil, n.Addr(), nil, missing); got != nil || err != nil {
		t.Errorf("FetchSettings of a document that nobody has = %v, %v; want nil, nil", got, err)
	}
}
