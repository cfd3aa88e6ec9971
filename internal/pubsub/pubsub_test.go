package pubsub

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// heard is a sink that remembers what it was shown.
type heard struct{ frames []string }

func (h *heard) Push(frame []byte) { h.frames = append(h.frames, string(frame)) }

func (h *heard) payloads(t *testing.T) (all []string) {
	t.Helper()
	for _, f := range h.frames {
		lines := strings.Split(strings.TrimSuffix(f, "\r\n"), "\r\n")
		all = append(all, lines[len(lines)-1])
	}
	return all
}

func subscriber() (*Subscriber, *heard) {
	h := &heard{}
	return NewSubscriber(h), h
}

func show(b *Board, kind Kind, channel, payload string, steps int) {
	frame := AppendMessage(nil, kind, []byte(channel), []byte(payload))
	m, _ := ParseMessage(frame)
	for b.Begin(m); b.Busy(); {
		b.Go(steps)
	}
}

func TestFrames(t *testing.T) {
	frame := AppendMessage(nil, Channel, []byte("c"), []byte("a\r\nb"))
	m, ok := ParseMessage(frame)
	if !ok || m.Kind != Channel || string(m.Channel) != "c" || string(m.Payload) != "a\r\nb" {
		t.Fatalf("ParseMessage gives %+v, %v", m, ok)
	}
	if got := AppendFrame(nil, resp.RESP2, frame); string(got) != "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$4\r\na\r\nb\r\n" {
		t.Errorf("the frame of RESP2 is %q", got)
	}
	for cut := range len(frame) {
		if _, ok := ParseMessage(frame[:cut]); ok {
			t.Errorf("a frame cut to %d bytes is taken for whole", cut)
		}
	}
	if _, ok := ParseMessage(append(bytes.Clone(frame), 'x')); ok {
		t.Error("bytes behind a frame are passed over")
	}
}

func FuzzParseMessage(f *testing.F) {
	f.Add(AppendMessage(nil, Shard, []byte("channel"), []byte("payload")))
	f.Add([]byte(">3\r\n$7\r\nmessage\r\n$-1\r\n$1\r\nx\r\n"))
	f.Fuzz(func(t *testing.T, frame []byte) {
		if m, ok := ParseMessage(frame); ok && len(m.Channel)+len(m.Payload) > len(frame) {
			t.Errorf("%q has a channel and a payload of %d bytes", frame, len(m.Channel)+len(m.Payload))
		}
	})
}

// A message comes once for the channel and once for each pattern, whatever the length of a turn.
func TestShow(t *testing.T) {
	for _, steps := range []int{1, 2, 1000} {
		var b Board
		s, h := subscriber()
		for kind, name := range map[Kind]string{Channel: "abc", Pattern: "a*", Shard: "abc"} {
			s.Want(kind, []byte(name))
			b.Show(s, kind, []byte(name))
		}
		show(&b, Channel, "abc", "1", steps)
		show(&b, Channel, "abd", "2", steps)
		show(&b, Channel, "x", "3", steps)
		show(&b, Shard, "abc", "4", steps)
		if got := h.payloads(t); !slices.Equal(got, []string{"1", "1", "2", "4"}) {
			t.Errorf("in turns of %d steps: shown %q", steps, got)
		}
		if s.Count(Channel) != 2 || s.Count(Shard) != 1 {
			t.Errorf("counts are %d and %d", s.Count(Channel), s.Count(Shard))
		}
	}
}

// Subscribers that come and go between the turns of a message: who stays gets it once.
func TestShowWhileSubscribersChange(t *testing.T) {
	var b Board
	var all []*Subscriber
	var sinks []*heard
	join := func() {
		s, h := subscriber()
		s.Want(Channel, []byte("c"))
		b.Show(s, Channel, []byte("c"))
		all, sinks = append(all, s), append(sinks, h)
	}
	leave := func(i int) {
		all[i].Unwant(Channel, []byte("c"))
		b.Hide(all[i], Channel, []byte("c"))
	}
	for range 10 {
		join()
	}
	m, _ := ParseMessage(AppendMessage(nil, Channel, []byte("c"), []byte("1")))
	b.Begin(m)
	b.Go(3)
	for _, i := range []int{0, 1, 4, 5, 6, 7, 8} { // two that have it, and most of the others
		leave(i)
	}
	join()
	for b.Busy() {
		b.Go(1)
	}
	for i, h := range sinks {
		want := 0
		if i <= 3 || i == 9 {
			want = 1
		}
		if len(h.frames) != want {
			t.Errorf("subscriber %d of 11 was shown %d messages, want %d", i, len(h.frames), want)
		}
	}
	if size := b.Size(Channel, []byte("c")); size != 4 {
		t.Errorf("the channel has %d subscribers, want 4", size)
	}
	show(&b, Channel, "c", "2", 100)
	for _, i := range []int{2, 3, 9, 10} {
		leave(i)
	}
	if len(b.topics[Channel]) != 0 {
		t.Error("a channel without subscribers stays")
	}
	for i, s := range all {
		if s.Bytes() != 0 || len(s.topics[Channel]) != 0 {
			t.Errorf("subscriber %d keeps %d bytes", i, s.Bytes())
		}
	}
}

// Messages of a channel are shown together, and each subscriber gets them in their order, also one who leaves behind
// the first of them.
func TestJoin(t *testing.T) {
	message := func(kind Kind, channel string, i int) Message {
		m, _ := ParseMessage(AppendMessage(nil, kind, []byte(channel), fmt.Append(nil, i)))
		return m
	}
	var b Board
	var sinks []*heard
	for range 10 {
		s, h := subscriber()
		s.Want(Channel, []byte("c"))
		b.Show(s, Channel, []byte("c"))
		sinks = append(sinks, h)
	}
	leaver := &leaver{}
	leaver.s = NewSubscriber(leaver)
	leaver.s.Want(Channel, []byte("c"))
	b.Show(leaver.s, Channel, []byte("c"))
	if b.Joins(message(Channel, "c", 0)) {
		t.Error("a message joins none")
	}
	b.Begin(message(Channel, "c", 0))
	if b.Members() != 11 {
		t.Errorf("%d members are to be shown the message, want 11", b.Members())
	}
	if b.Joins(message(Channel, "d", 1)) || b.Joins(message(Shard, "c", 1)) {
		t.Error("a message of another channel joins")
	}
	var want []string
	for i := range maxJoined + 1 {
		want = append(want, fmt.Sprint(i))
		if i > 0 {
			m := message(Channel, "c", i)
			if !b.Joins(m) {
				t.Fatalf("message %d does not join", i)
			}
			b.Join(m)
		}
	}
	if b.Joins(message(Channel, "c", 99)) {
		t.Error("more messages join than may")
	}
	b.Go(1)
	if b.Joins(message(Channel, "c", 99)) {
		t.Error("a message joins those that some have been shown")
	}
	for b.Busy() {
		b.Go(1)
	}
	for i, h := range sinks {
		if got := h.payloads(t); !slices.Equal(got, want) {
			t.Errorf("subscriber %d is shown %q", i, got)
		}
	}
	if leaver.frames != 1 {
		t.Errorf("who leaves is shown %d messages more", leaver.frames-1)
	}

	b.Begin(message(Channel, "c", 0))
	if b.Joins(Message{Kind: Channel, Channel: []byte("c"), Frame: make([]byte, joinedBytes+1)}) {
		t.Error("a message joins that is too long")
	}
	s, h := subscriber()
	s.Want(Channel, []byte("c"))
	b.Show(s, Channel, []byte("c"))
	if b.Joins(message(Channel, "c", 1)) {
		t.Error("a message joins one that was published before somebody subscribed")
	}
	for b.Busy() {
		b.Go(100)
	}
	s.Want(Pattern, []byte("*"))
	b.Show(s, Pattern, []byte("*"))
	if b.Begin(message(Channel, "c", 2)); b.Joins(message(Channel, "c", 3)) {
		t.Error("a message joins one that a pattern may match")
	}
	for b.Busy() {
		b.Go(100)
	}
	if got := h.payloads(t); !slices.Equal(got, []string{"2", "2"}) {
		t.Errorf("who has subscribed since is shown %q", got)
	}
}

// leaver is a sink that goes with the first frame.
type leaver struct {
	s      *Subscriber
	frames int
}

func (l *leaver) Push([]byte) {
	l.frames++
	l.s.Mute()
}

// A proxy asks for a subscription before it is shown, and ends it before it is hidden.
func TestWantedIsNotShown(t *testing.T) {
	var b Board
	s, h := subscriber()
	name := []byte("c")
	s.Want(Channel, name)
	show(&b, Channel, "c", "0", 9)
	b.Show(s, Channel, name)
	show(&b, Channel, "c", "1", 9)
	s.Unwant(Channel, name)
	show(&b, Channel, "c", "2", 9)
	s.Want(Channel, name)
	b.Hide(s, Channel, name)
	show(&b, Channel, "c", "3", 9)
	b.Show(s, Channel, name)
	show(&b, Channel, "c", "4", 9)
	if got := h.payloads(t); !slices.Equal(got, []string{"1", "2", "4"}) {
		t.Errorf("shown %q", got)
	}
}

func TestRefuse(t *testing.T) {
	s, _ := subscriber()
	for i := range MaxTopics {
		name := fmt.Appendf(nil, "c%d", i)
		if refusal := s.Refuse(Channel, [][]byte{name}); refusal != "" {
			t.Fatalf("channel %d is refused: %s", i, refusal)
		}
		s.Want(Channel, name)
	}
	if got := s.Refuse(Shard, [][]byte{[]byte("x")}); got != ErrTooMany {
		t.Errorf("one channel too many: %q", got)
	}
	s, _ = subscriber()
	if got := s.Refuse(Channel, [][]byte{make([]byte, MaxName+1)}); got != ErrName {
		t.Errorf("a long name: %q", got)
	}
	if got := s.Refuse(Pattern, [][]byte{bytes.Repeat([]byte("a"), MaxName+1)}); got == "" {
		t.Error("a long pattern is not refused")
	}
}

// Patterns that come and go while a message is shown: it goes on with those that stay.
func TestPatternsChangeWhileShowing(t *testing.T) {
	var b Board
	s, h := subscriber()
	const patterns = 100
	name := func(i int) []byte { return fmt.Appendf(nil, "c*%d*", i) }
	listen := func(from, to int) {
		for i := from; i < to; i++ {
			s.Want(Pattern, name(i))
			b.Show(s, Pattern, name(i))
		}
	}
	listen(0, patterns)
	m, _ := ParseMessage(AppendMessage(nil, Channel, []byte("c0 99 77 200"), []byte("1")))
	b.Begin(m)
	b.Go(20)
	for i := 1; i < patterns; i++ {
		if i != 77 {
			s.Unwant(Pattern, name(i))
			b.Hide(s, Pattern, name(i))
		}
	}
	listen(200, 201)
	for b.Busy() {
		b.Go(7)
	}
	shown := len(h.frames)
	if shown < 3 || !strings.Contains(h.frames[shown-1], "c*77*") {
		t.Errorf("shown %q", h.frames)
	}
	if len(b.patterns) != 3 {
		t.Errorf("the list of 3 patterns has %d places", len(b.patterns))
	}
	if show(&b, Channel, "c200 77", "2", 100); len(h.frames) != shown+3 { // 0, 77 and 200
		t.Errorf("then it is shown %q", h.frames[shown:])
	}
	s.Mute()
	shown = len(h.frames)
	if show(&b, Channel, "c200", "3", 100); len(h.frames) != shown {
		t.Error("a subscriber that has gone is shown a message")
	}
}

func TestSlow(t *testing.T) {
	var s Subscriber
	const hardOutput, softOutput = 32 << 20, 8 << 20
	limits := &Limits{Hard: hardOutput, Soft: softOutput, SoftTime: time.Minute}
	for _, at := range []struct {
		unread int
		now    time.Duration
		want   bool
	}{
		{softOutput + 1, 10 * time.Second, false},
		{softOutput + 1, 60 * time.Second, false},
		{softOutput, 69 * time.Second, false}, // it has read
		{softOutput + 1, 80 * time.Second, false},
		{softOutput + 1, 140 * time.Second, true},
		{hardOutput + 1, 141 * time.Second, true},
	} {
		if got := s.IsSlow(limits, at.unread, at.now); got != at.want {
			t.Errorf("%d bytes at %v: slow is %v", at.unread, at.now, got)
		}
	}
}

// 0 bytes are no limit.
func TestSlowWithoutLimits(t *testing.T) {
	for _, limits := range []Limits{{}, {Soft: 100, SoftTime: time.Hour}, {Hard: 1 << 30}} {
		var s Subscriber
		s.IsSlow(&limits, 1<<20, time.Second)
		if s.IsSlow(&limits, 1<<20, time.Minute) {
			t.Errorf("a MiB for a minute is too much for %+v", limits)
		}
	}
}

func TestShowAllocatesNothing(t *testing.T) {
	var b Board
	for range 100 {
		s := NewSubscriber(nothing{})
		s.Want(Channel, []byte("c"))
		b.Show(s, Channel, []byte("c"))
		s.Want(Pattern, []byte("*"))
		b.Show(s, Pattern, []byte("*"))
	}
	m, _ := ParseMessage(AppendMessage(nil, Channel, []byte("c"), []byte("payload")))
	if n := testing.AllocsPerRun(100, func() {
		for b.Begin(m); b.Busy(); {
			b.Go(1000)
		}
	}); n > 0 {
		t.Errorf("a message to 200 subscribers allocates %v times", n)
	}
}

// BenchmarkShow shows a message of 64 bytes to so many subscribers, whose outputs are memory.
func BenchmarkShow(b *testing.B) {
	for _, subscribers := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprint("Board/Subscribers", subscribers), func(b *testing.B) {
			var board Board
			for range subscribers {
				s := NewSubscriber(&output{})
				s.Want(Channel, []byte("c"))
				board.Show(s, Channel, []byte("c"))
			}
			m, _ := ParseMessage(AppendMessage(nil, Channel, []byte("c"), make([]byte, 64)))
			for b.Loop() {
				for board.Begin(m); board.Busy(); {
					board.Go(1024)
				}
			}
		})
	}
}

// output has what a connection was sent.
type output struct{ b []byte }

func (o *output) Push(frame []byte) { o.b = AppendFrame(o.b[:0], resp.RESP2, frame) }

type nothing struct{}

func (nothing) Push([]byte) {}

// TestDropMessages: the messages of one topic are dropped from those that wait, in both versions of
// the protocol.
func TestDropMessages(t *testing.T) {
	for _, v := range []resp.Version{resp.RESP2, resp.RESP3} {
		m, _ := ParseMessage(AppendMessage(nil, Channel, []byte("c"), []byte("pmessage")))
		ofChannel := AppendFrame(nil, v, m.Frame)
		ofPattern := AppendFrame(nil, v, appendPatternMessage(nil, "c", &m))
		ofOther := AppendFrame(nil, v, appendPatternMessage(nil, "c*", &m))
		frames := slices.Concat(ofPattern, ofChannel, ofPattern, ofOther, ofPattern)
		if got, want := DropMessages(frames, Pattern, []byte("c")), slices.Concat(ofChannel, ofOther); !bytes.Equal(got, want) {
			t.Errorf("%q is left, want %q", got, want)
		}
	}
}
