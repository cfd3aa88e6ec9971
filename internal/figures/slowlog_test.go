package figures

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/conversation"
)

func TestSlowEntriesAreCutAsRedisDoes(t *testing.T) {
	f := func(args [][]byte, want string) {
		t.Helper()
		if e := NewSlowEntry("1.2.3.4:5", "bob", args); strings.Join(e.args, " ") != want ||
			e.addr != "1.2.3.4:5" || e.name != "bob" {
			t.Errorf("the entry is %+v, want %q", e, want)
		}
	}
	many := func(n int) [][]byte { return bytes.Split(bytes.Repeat([]byte{'x'}, n), nil) }
	f(conversation.Words(t, "SET k v"), "SET k v")
	f(many(32), strings.Repeat("x ", 31)+"x")
	f(many(33), strings.Repeat("x ", 31)+"... (2 more arguments)")
	f(many(1000), strings.Repeat("x ", 31)+"... (969 more arguments)")
	long := bytes.Repeat([]byte{'y'}, 128)
	f([][]byte{long}, string(long))
	f([][]byte{append(long[:128:128], "zz"...)}, string(long)+"... (2 more bytes)")
}

func TestSlowLogKeepsTheLatest(t *testing.T) {
	var l SlowLog
	l.Limit(10000, 3)
	now := time.UnixMicro(1_700_000_000_000_000)
	for _, key := range []string{"a", "b", "c", "d"} {
		// Two entries of the same moment still have different ids.
		l.Add(NewSlowEntry("127.0.0.1:50000", "", conversation.Words(t, "GET "+key)), 20*time.Millisecond, now)
	}
	get := func(request string) string {
		return string(l.AppendReply(nil, conversation.Words(t, request)))
	}
	entry := func(id, key string) string {
		return "*6\r\n:170000000000000" + id + "\r\n:1700000000\r\n:20000\r\n*2\r\n$3\r\nGET\r\n$1\r\n" + key +
			"\r\n$15\r\n127.0.0.1:50000\r\n$0\r\n\r\n"
	}
	if got, want := get("SLOWLOG GET 2"), "*2\r\n"+entry("3", "d")+entry("2", "c"); got != want {
		t.Errorf("SLOWLOG GET 2 = %q, want %q", got, want)
	}
	if got := get("SLOWLOG LEN"); got != ":3\r\n" {
		t.Errorf("SLOWLOG LEN = %q", got)
	}
	l.Limit(10000, 1)
	if got, want := get("SLOWLOG GET -1"), "*1\r\n"+entry("3", "d"); got != want {
		t.Errorf("SLOWLOG GET -1 of a shorter log = %q, want %q", got, want)
	}
	l.Limit(10000, 0)
	l.Add(NewSlowEntry("127.0.0.1:50000", "", nil), time.Second, now)
	if got := get("SLOWLOG GET"); got != "*0\r\n" {
		t.Errorf("a log of no length has %q", got)
	}
}

func TestThreshold(t *testing.T) {
	f := func(slowerThan int64, took time.Duration, want bool) {
		t.Helper()
		var l SlowLog
		l.Limit(slowerThan, 1)
		if got := l.Slow(took); got != want {
			t.Errorf("with %d, %v is slow: %v", slowerThan, took, got)
		}
	}
	f(-1, time.Hour, false)
	f(0, 0, true)
	f(10000, 9999*time.Microsecond, false)
	f(10000, 10*time.Millisecond, true)
	f(math.MaxInt64, time.Minute, false)
}

func TestSlowLogsOfNodes(t *testing.T) {
	entry := func(id, name string) string {
		return "*6\r\n:" + id + "\r\n:1\r\n:2\r\n*1\r\n$4\r\nPING\r\n$1\r\na\r\n" + name
	}
	var m SlowLogs
	if !m.Add([]byte("*2\r\n"+entry("7", "$0\r\n\r\n")+entry("3", "$3\r\nbob\r\n")), "n1") ||
		!m.Add([]byte("*1\r\n"+entry("5", "$0\r\n\r\n")), "n2") {
		t.Fatal("an answer is not taken")
	}
	want := "*3\r\n" + entry("7", "$2\r\nn1\r\n") + entry("5", "$2\r\nn2\r\n") + entry("3", "$3\r\nbob\r\n")
	if got := string(m.Append(nil, -1)); got != want {
		t.Errorf("merged: %q, want %q", got, want)
	}
	if got := string(m.Append(nil, 1)); got != "*1\r\n"+entry("7", "$2\r\nn1\r\n") {
		t.Errorf("the latest: %q", got)
	}
	for _, bad := range []string{"+OK\r\n", "*1\r\n:1\r\n", "*1\r\n*5\r\n:1\r\n:1\r\n:1\r\n*0\r\n$0\r\n\r\n", "*1\r\n*6\r\n+x\r\n:1\r\n:1\r\n*0\r\n$0\r\n\r\n$0\r\n\r\n", "*2\r\n" + entry("1", "$0\r\n\r\n")} {
		if m.Add([]byte(bad), "n") {
			t.Errorf("%q is taken for a slow log", bad)
		}
	}
	if _, refusal := SlowLogCount(conversation.Words(t, "SLOWLOG GET 99999999999")); refusal != "" {
		t.Errorf("a large count is refused: %s", refusal)
	}
}
