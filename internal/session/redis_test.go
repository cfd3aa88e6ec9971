package session

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/conversation"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// TestEntriesAsRedis compares how rows are encoded, for one row of each kind
// of key spec. They need not be built.
func TestEntriesAsRedis(t *testing.T) {
	real := startRedis(t)
	f := func(name string) {
		t.Helper()
		for _, hello := range []string{"HELLO 2", "HELLO 3"} {
			real.Connect(t)
			real.say(t, hello)
			want := real.say(t, "COMMAND INFO "+name)
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

// TestInfoAsRedis: sections in Redis's order, and no field that Redis does not
// have, apart from our own.
func TestInfoAsRedis(t *testing.T) {
	real := startRedis(t)
	real.Connect(t)
	real.say(t, "HELLO 3")
	s := testServer("")
	for _, sections := range []string{"", " all", " everything", " default", " nosuch", " server clients", " keyspace CLUSTER"} {
		want := infoFields(real.say(t, "INFO"+sections))
		got := infoFields(string(s.AppendInfo(nil, resp.RESP3, conversation.Words(t, "INFO"+sections)[1:], Info{})))
		for _, field := range got {
			if !slices.Contains(want, field) && !strings.HasPrefix(field, "dunlin_") {
				t.Errorf("INFO%s shows %q, which Redis does not", sections, field)
			}
		}
		if g, w := headings(got), headings(want); !slices.Equal(g, w) {
			t.Errorf("INFO%s has the sections\n%q, want\n%q", sections, g, w)
		}
	}
}

// infoFields are the names in an INFO text, and its headings.
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

// TestClientLineAsRedis: the fields of CLIENT LIST in Redis's order; ours are
// those of 7.4, the real server may be older.
func TestClientLineAsRedis(t *testing.T) {
	real := startRedis(t)
	real.Connect(t)
	want := lineFields(real.say(t, "CLIENT INFO"))
	got := lineFields(string(AppendClientLine(nil, testServer("").NewState("a:1", "b:2", 0), 0)))
	newer := []string{"watch", "lib-name", "lib-ver"}
	got = slices.DeleteFunc(got, func(f string) bool { return slices.Contains(newer, f) && !slices.Contains(want, f) })
	if !slices.Equal(got, want) {
		t.Errorf("fields\n%q, want\n%q", got, want)
	}
}

func lineFields(text string) (fields []string) {
	for _, word := range strings.Fields(text) {
		if name, _, ok := strings.Cut(word, "="); ok {
			fields = append(fields, name)
		}
	}
	return fields
}

// TestClusterAsRedis: a node of ours that owns all slots describes itself as a
// real one does. Ids, addresses and the state of the real one differ.
func TestClusterAsRedis(t *testing.T) {
	real := startRedis(t, "--cluster-enabled", "yes", "--cluster-announce-ip", "127.0.0.1")
	real.Connect(t)
	if got := real.say(t, "CLUSTER ADDSLOTSRANGE 0 16383"); got != "+OK\r\n" {
		t.Fatalf("ADDSLOTSRANGE: %q", got)
	}
	id := strings.Split(real.say(t, "CLUSTER MYID"), "\r\n")[1]
	ours := NewServer(ServerOptions{Cluster: func() View {
		return View{Table: tableOf(real.Addr), Self: "node-0"}
	}})
	for _, hello := range []string{"HELLO 2", "HELLO 3"} {
		e := connected(t, ours)
		e.say(t, hello)
		real.Connect(t)
		real.say(t, hello)
		for _, request := range []string{"CLUSTER SLOTS", "CLUSTER SHARDS"} {
			want := strings.ReplaceAll(real.say(t, request), id, NodeID("node-0"))
			if got := e.say(t, request); got != want {
				t.Errorf("%s after %s: %q, want %q", request, hello, got, want)
			}
		}
		// The port of the bus and the epoch are those of the table.
		bus := regexp.MustCompile(`@\d+ myself,master - 0 0 0 `)
		want := strings.ReplaceAll(bodyOf(real.say(t, "CLUSTER NODES")), id, NodeID("node-0"))
		want = bus.ReplaceAllString(want, "@0 myself,master - 0 0 1 ")
		if got := bodyOf(e.say(t, "CLUSTER NODES")); got != want {
			t.Errorf("CLUSTER NODES after %s: %q, want %q", hello, got, want)
		}
		if got, want := infoNames(e.say(t, "CLUSTER INFO")), infoNames(real.say(t, "CLUSTER INFO")); !slices.Equal(got, want) {
			t.Errorf("CLUSTER INFO after %s: %q, want %q", hello, got, want)
		}
	}
}

func infoNames(reply string) (names []string) {
	for _, line := range strings.Split(bodyOf(reply), "\r\n") {
		if name, _, ok := strings.Cut(line, ":"); ok {
			names = append(names, name)
		}
	}
	return names
}

// bodyOf is a bulk or verbatim string without its header.
func bodyOf(reply string) string {
	body, _ := resp.DecodeBulk([]byte(reply))
	return string(bytes.TrimPrefix(body, []byte("txt:")))
}
