package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestTalkReadsReplies(t *testing.T) {
	f := func(replies, want string, wantErr bool) {
		t.Helper()
		in := bufio.NewReader(strings.NewReader(replies + "+next\r\n"))
		talk := talk{in: in}
		got, err := talk.reply(true)
		if got != want || (err != nil) != wantErr {
			t.Errorf("%q: %q, %v, want %q, error %t", replies, got, err, want, wantErr)
		}
		if next, err := talk.reply(true); next != "next" {
			t.Errorf("behind %q: %q, %v", replies, next, err)
		}
	}
	f("+OK\r\n", "OK", false)
	f(":17\r\n", "17", false)
	f("$5\r\na\r\nbc\r\n", "a\r\nbc", false)
	f("$-1\r\n", "", false)
	f("*2\r\n$1\r\n0\r\n*3\r\n:1\r\n$-1\r\n$2\r\nab\r\n", "", false)
	f("*-1\r\n", "", false)
	f("-ERR no\r\n", "", true)
	f("?\r\n", "", true)
}

func TestCommandsOfFamilies(t *testing.T) {
	for i := range families {
		f := newFilling(&families[i], 10, 16)
		if f.values*f.length != elementsAtLeast {
			t.Errorf("%s: %d values of %d elements", f.family.name, f.values, f.length)
		}
		if n := len(f.names[9]); n != f.name {
			t.Errorf("%s: a name of %d bytes, want %d", f.family.name, n, f.name)
		}
		for range 1000 {
			f.skewed = !f.skewed
			if _, i := f.any(); i < 0 || i >= f.length {
				t.Fatalf("%s: element %d of %d", f.family.name, i, f.length)
			}
		}
		if words := f.family.insert(f, "v:1", 3); words[1] != "v:1" || !slices.Contains(words, f.names[3]) {
			t.Errorf("%s: %q", f.family.name, words)
		}
	}
}

// TestStreamFields has entries of equal and of different names with like payloads.
func TestStreamFields(t *testing.T) {
	names := func(i int, equal bool) string { return strings.Join(streamFields(i, equal)[:1], "") }
	if names(1, true) != names(2, true) || names(1, false) == names(2, false) {
		t.Errorf("names %q and %q, %q and %q", names(1, true), names(2, true), names(1, false), names(2, false))
	}
	if words := streamFields(7, true); len(words) != 6 || words[1] == words[3] {
		t.Errorf("%q, want three names and values", words)
	}
	if got := lengthOf([]string{"a", "bcd"}); got != 4 {
		t.Errorf("%d bytes, want 4", got)
	}
}

func TestPerSecondOf(t *testing.T) {
	got, err := perSecondOf("\"test\",\"rps\"\n\"LPUSH\",\"1234.50\",\"0.1\"\n")
	if got != 1234.5 || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := perSecondOf("Error from server\n"); err == nil {
		t.Errorf("%v, want an error", got)
	}
}

func TestRatioOf(t *testing.T) {
	of, than := []cost{{200, 50}, {300, 50}, {400, 50}}, []cost{{100, 100}, {100, 0}, {100, 100}}
	if got := ratioOf(of, than); got != "3.00x, 0.50x" {
		t.Errorf("%s: a round without processor time counts", got)
	}
	if got := ratioOf(nil, than); got != "-" {
		t.Errorf("%s, want none", got)
	}
}

// TestTypesEnd has both parts end when the race does.
func TestTypesEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := &race{say: io.Discard, rounds: 1}
	for _, part := range typesParts {
		if err := part.run(r, ctx, typesOptions{short: true}, io.Discard); err == nil && part.name == "elements" {
			t.Errorf("%s does not say that it was ended", part.name)
		}
	}
}

// TestAudience: a batch has arrived when all subscribers have all of it, in whatever pieces.
func TestAudience(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	const subscribers, batches = 5, 3
	publish := make(chan string)
	var servers sync.WaitGroup
	servers.Go(func() {
		var conns []net.Conn
		for range subscribers {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			if _, err := io.ReadFull(conn, make([]byte, len(subscribeRequest))); err != nil {
				return
			}
			_, _ = io.WriteString(conn, subscribeReply)
			conns = append(conns, conn)
		}
		for frames := range publish {
			for i, conn := range conns {
				_, _ = io.WriteString(conn, frames[:i])
				_, _ = io.WriteString(conn, frames[i:])
			}
		}
	})
	defer servers.Wait()
	defer close(publish)
	defer l.Close()
	a, err := seat(t.Context(), []string{l.Addr().String()}, subscribers, subscribeRequest, subscribeReply)
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	for batch := range batches {
		frames := strings.Repeat(publishedFrame, batch+1)
		a.want.Add(int64(subscribers * len(frames)))
		publish <- frames
		if err := a.await(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWakeups: a wake-up ends when the client that waits has the element, not when the push is answered.
func TestWakeups(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	const late, n = 20 * time.Millisecond, 3
	pop, push := "*3\r\n$5\r\nBLPOP\r\n$1\r\nq\r\n$2\r\n10\r\n", "*3\r\n$5\r\nRPUSH\r\n$1\r\nq\r\n$7\r\nelement\r\n"
	var server sync.WaitGroup
	server.Go(func() {
		pusher, err := l.Accept()
		if err != nil {
			return
		}
		defer pusher.Close()
		waiter, err := l.Accept()
		if err != nil {
			return
		}
		defer waiter.Close()
		for range n {
			if _, err := io.ReadFull(waiter, make([]byte, len(pop))); err != nil {
				return
			}
			if _, err := io.ReadFull(pusher, make([]byte, len(push))); err != nil {
				return
			}
			_, _ = io.WriteString(pusher, ":1\r\n")
			time.Sleep(late)
			_, _ = io.WriteString(waiter, "*2\r\n$1\r\nq\r\n$7\r\nelement\r\n")
		}
	})
	defer server.Wait()
	defer l.Close()
	h, err := wakeupsOf(t.Context(), l.Addr().String(), []string{"q"}, n)
	if err != nil || h.Total() != n || h.Quantile(0) < late*9/10 {
		t.Fatalf("%d wake-ups, the shortest %v, %v", h.Total(), h.Quantile(0), err)
	}
}

// TestPushes: a crowd gets exactly one element each.
func TestPushes(t *testing.T) {
	for _, want := range []int{1, crowdPush, 3*crowdPush + 7} {
		command, got := pushes(want), 0
		for i := 0; command(i) != nil; i++ {
			got += len(command(i)) - len([]string{"RPUSH", "crowd"})
		}
		if got != want {
			t.Errorf("%d elements are pushed, want %d", got, want)
		}
	}
}
