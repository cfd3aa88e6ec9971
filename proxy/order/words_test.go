package order

import (
	"bytes"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// TestWordsOfTransactions: a transaction is known by its verb, however many commands it has.
func TestWordsOfTransactions(t *testing.T) {
	args := [][]byte{[]byte("DUNLIN"), []byte("EXEC"), []byte("1"), []byte("0")}
	incr := resp.AppendRequest(nil, []byte("INCR"), []byte("k"))
	for range 10_000 {
		args = append(args, incr)
	}
	raw := resp.AppendRequest(nil, args...)
	if got := words(raw); len(got) != 2 || command.Row(got).ID != command.DunlinExec {
		t.Errorf("the words of EXEC are %.60q", got)
	}
	if got := words(resp.AppendRequest(nil, args[:3]...)); len(got) != 2 {
		t.Errorf("the words of a short EXEC are %.60q", got)
	}
	if got := words(resp.AppendRequest(nil, args[0], []byte("EXECUTE"), args[2])); len(got) != 3 {
		t.Errorf("the words of another verb are %.60q", got)
	}
	if got := words([]byte("*1\r\n")); got != nil {
		t.Errorf("the words of half a request are %q", got)
	}
	if n := testing.AllocsPerRun(10, func() { words(raw) }); n != 0 {
		t.Errorf("to know a transaction of %d bytes allocates %v times", len(raw), n)
	}
	if got := words(bytes.Clone(incr)); len(got) != 2 {
		t.Errorf("the words of INCR are %q", got)
	}
}
