package figures

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/conversation"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// TestDurationBuckets checks that every duration lies within the bounds of its bucket, which are at
// most a quarter apart.
func TestDurationBuckets(t *testing.T) {
	for n := uint64(1); n < 1<<40; n += 1 + n/37 {
		i := durationBucket(n)
		if end, before := bucketEnd(i), bucketEnd(i-1); int64(n) > end || int64(n) <= before {
			t.Fatalf("%d ns is in bucket %d, from %d to %d", n, i, before+1, end)
		} else if n > 8 && float64(end) > 1.25*float64(before+1) {
			t.Fatalf("bucket %d is from %d to %d", i, before+1, end)
		}
	}
	var d Durations
	d.Note(0)
	d.Note(-time.Second)
	d.Note(100 * 24 * time.Hour)
	if d.Count != 3 || d.Buckets[1] != 2 || d.Buckets[durationBuckets-1] != 1 {
		t.Errorf("after odd durations: %+v", d)
	}
}

func TestPercentiles(t *testing.T) {
	var d Durations
	if got := d.percentile(50); got != 0 {
		t.Errorf("of nothing: %d", got)
	}
	for i := range 1000 {
		d.Note(time.Duration(i+1) * time.Microsecond)
	}
	f := func(p float64, want time.Duration) {
		t.Helper()
		if got := time.Duration(d.percentile(p)); got < want || got > want*5/4 {
			t.Errorf("percentile %v = %v, want about %v", p, got, want)
		}
	}
	f(50, 500*time.Microsecond)
	f(99, 990*time.Microsecond)
	f(99.9, 999*time.Microsecond)
	if got := d.mean(); got != 500500 {
		t.Errorf("mean %v", got)
	}
}

// TestCallsTravel checks that Decode reads what AppendCalls encodes and adds it up, and that it
// refuses malformed bytes.
func TestCallsTravel(t *testing.T) {
	var a, sum, want Calls
	for _, id := range []command.ID{command.Get, command.ClientKill, command.Set} {
		c := &a.Commands[id]
		c.Calls, c.Failed, c.Rejected = rand.Int64N(1e12), 3, 4
		if id != command.Set {
			c.Times = &Durations{}
			for range 50 {
				c.Times.Note(time.Duration(rand.Int64N(1e9)))
			}
		}
	}
	a.CountError("ERR", 7)
	wire := AppendCalls(nil, &a)
	for range 2 {
		want.Add(&a)
		if !sum.Decode(wire) {
			t.Fatalf("%q is not taken", wire)
		}
	}
	if !reflect.DeepEqual(sum, want) {
		t.Errorf("decoded %+v, want %+v", sum, want)
	}
	for n := range len(wire) {
		var c Calls
		if c.Decode(wire[:n]) {
			t.Fatalf("the first %d bytes are taken", n)
		}
	}
	for _, bad := range []string{"*0\r\n", ":1\r\n", "*1\r\n*1\r\n$1\r\na\r\n", "*2\r\n*0\r\n*2\r\n$3\r\nget\r\n:1\r\n",
		"*2\r\n*0\r\n*8\r\n$3\r\nget\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:9999\r\n:1\r\n"} {
		var c Calls
		if c.Decode([]byte(bad)) {
			t.Errorf("%q is taken", bad)
		}
	}
	var c Calls
	if !c.Decode([]byte("*2\r\n*0\r\n*6\r\n$7\r\nunheard\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n")) {
		t.Error("a newer node's command is not left out")
	}
}

func TestSectionsAboutCalls(t *testing.T) {
	calls := &Calls{}
	get := &calls.Commands[command.Get]
	get.Calls, get.Times = 1000, &Durations{}
	for range 10 {
		get.Times.Note(2 * time.Microsecond)
	}
	calls.Commands[command.ClientKill] = CommandCalls{Calls: 2, Failed: 1}
	calls.Commands[command.Set] = CommandCalls{Rejected: 3}
	calls.CountError("WRONGTYPE", 2)
	calls.CountError("ERR", 1)
	p := testProcess()
	text := string(p.AppendInfo(nil, resp.RESP2,
		conversation.Words(t, "commandstats errorstats latencystats"), Info{Calls: calls}))
	_, text, _ = strings.Cut(text, "\r\n")
	want := "# Commandstats\r\n" +
		"cmdstat_get:calls=1000,usec=2000,usec_per_call=2.00,rejected_calls=0,failed_calls=0\r\n" +
		"cmdstat_set:calls=0,usec=0,usec_per_call=0.00,rejected_calls=3,failed_calls=0\r\n" +
		"cmdstat_client|kill:calls=2,usec=0,usec_per_call=0.00,rejected_calls=0,failed_calls=1\r\n" +
		"\r\n# Errorstats\r\nerrorstat_ERR:count=1\r\nerrorstat_WRONGTYPE:count=2\r\n" +
		"\r\n# Latencystats\r\nlatency_percentiles_usec_get:p50=2.047,p99=2.047,p99.9=2.047\r\n\r\n"
	if text != want {
		t.Errorf("INFO is\n%s\nwant\n%s", text, want)
	}
	f := func(request, want string) {
		t.Helper()
		if got := string(AppendLatencyHistogram(nil, resp.RESP2, conversation.Words(t, request), calls)); got != want {
			t.Errorf("%s = %q, want %q", request, got, want)
		}
	}
	histogram := "*2\r\n$3\r\nget\r\n*4\r\n$5\r\ncalls\r\n:10\r\n$14\r\nhistogram_usec\r\n*2\r\n:4\r\n:10\r\n"
	f("LATENCY HISTOGRAM", histogram)
	f("LATENCY HISTOGRAM GET nosuch", histogram)
	f("LATENCY HISTOGRAM set client", "*0\r\n")
	if got := string(AppendLatencyHistogram(nil, resp.RESP3, conversation.Words(t, "LATENCY HISTOGRAM"),
		calls)); !strings.HasPrefix(got, "%1\r\n$3\r\nget\r\n%2\r\n") {
		t.Errorf("in RESP3: %q", got)
	}
}
