package wide

import (
	"testing"

	"github.com/dunlin-cache/dunlin/internal/command"
)

// TestFunctionStats: of what the nodes say, the function counts that runs for longest.
func TestFunctionStats(t *testing.T) {
	const engines = "$7\r\nengines\r\n*2\r\n$3\r\nLUA\r\n*0\r\n"
	idle := "*4\r\n$14\r\nrunning_script\r\n$-1\r\n" + engines
	runs := func(ms string) string {
		return "%2\r\n$14\r\nrunning_script\r\n%3\r\n$4\r\nname\r\n$1\r\nf\r\n$7\r\ncommand\r\n*1\r\n$1\r\n:\r\n$11\r\nduration_ms\r\n:" + ms + "\r\n" + engines
	}
	ask := func(replies ...string) string {
		q, err := New(&Call{Command: command.ByID(command.FunctionStats), Args: [][]byte{[]byte("FUNCTION"), []byte("STATS")}})
		if err != nil {
			t.Fatal(err)
		}
		q.Begin()
		for _, reply := range replies {
			q.Add(Answer{Reply: []byte(reply)})
		}
		return string(q.Reply(nil))
	}
	for _, c := range []struct {
		replies []string
		want    string
	}{
		{[]string{idle, idle}, idle},
		{[]string{idle, runs("5"), runs("70"), runs("6"), idle}, runs("70")},
		{[]string{"-ERR no\r\n", runs("0")}, runs("0")},
		{[]string{"-ERR no\r\n"}, "-ERR no\r\n"},
		{[]string{idle, "+OK\r\n"}, "-" + errMerge.Error() + "\r\n"},
		{nil, "-" + errMerge.Error() + "\r\n"},
	} {
		if got := ask(c.replies...); got != c.want {
			t.Errorf("of %q: %q, want %q", c.replies, got, c.want)
		}
	}
}
