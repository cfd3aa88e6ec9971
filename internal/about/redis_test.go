package about

import (
	"testing"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/conversation"
	"github.com/dunlin-cache/dunlin/internal/redistest"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// TestEntriesAsRedis compares the encoding of rows with Redis's, for one row of each kind of key
// spec. The rows need not be built.
func TestEntriesAsRedis(t *testing.T) {
	redistest.Want(t, "7.")
	real := &conversation.Socket{Addr: redistest.Start(t)}
	f := func(name string) {
		t.Helper()
		for _, hello := range []string{"HELLO 2", "HELLO 3"} {
			real.Connect(t)
			real.Say(t, hello)
			want := real.Say(t, "COMMAND INFO "+name)
			v := resp.Version(hello[6] - '0')
			got := appendEntry(resp.AppendArray(nil, 1), v, command.Lookup([]byte(name)))
			if string(got) != want {
				t.Errorf("%s after %s:\n%q, want\n%q", name, hello, got, want)
			}
		}
	}
	f("get")    // a range
	f("zunion") // a count of keys
	f("xread")  // a keyword
	f("echo")   // no key at all
}
