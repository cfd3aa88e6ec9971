package figures

import (
	"slices"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/conversation"
	"github.com/dunlin-cache/dunlin/internal/redistest"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// TestInfoAsRedis checks that sections are in Redis's order, and that all fields are Redis's,
// except Dunlin's own and one of Valkey's.
func TestInfoAsRedis(t *testing.T) {
	redistest.Want(t, "7.")
	real := &conversation.Socket{Addr: redistest.Start(t)}
	real.Connect(t)
	real.Say(t, "HELLO 3")
	p := testProcess()
	for _, sections := range []string{"", " all", " everything", " default", " nosuch",
		" server clients", " keyspace CLUSTER"} {
		want := infoFields(real.Say(t, "INFO"+sections))
		got := infoFields(string(p.AppendInfo(nil, resp.RESP3, conversation.Words(t, "INFO"+sections)[1:], Info{})))
		for _, field := range got {
			if !slices.Contains(want, field) && !strings.HasPrefix(field, "dunlin_") && field != "availability_zone" {
				t.Errorf("INFO%s shows %q, which Redis does not", sections, field)
			}
		}
		if g, w := headings(got), headings(want); !slices.Equal(g, w) {
			t.Errorf("INFO%s has the sections\n%q, want\n%q", sections, g, w)
		}
	}
}

// infoFields returns the names and the headings in an INFO text.
func infoFields(reply string) (fields []string) {
	_, body, _ := strings.Cut(reply, "txt:")
	for _, line := range strings.Split(strings.TrimSuffix(body, "\r\n"), "\r\n") {
		name, _, _ := strings.Cut(line, ":")
		if name != "" {
			fields = append(fields, name)
		}
	}
	return fields
}

func headings(fields []string) (h []string) {
	for _, f := range fields {
		if strings.HasPrefix(f, "#") {
			h = append(h, f)
		}
	}
	return h
}
