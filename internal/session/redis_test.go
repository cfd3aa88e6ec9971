package session

import (
	"slices"
	"strings"
	"testing"
)

// TestClientLineAsRedis checks that the fields of CLIENT LIST are in Redis's order. Dunlin's are
// those of 8.0; the real server may be older.
func TestClientLineAsRedis(t *testing.T) {
	real := startRedis(t)
	real.Connect(t)
	want := lineFields(real.Say(t, "CLIENT INFO"))
	got := lineFields(string(AppendClientLine(nil, testServer("").NewState("a:1", "b:2", 0), 0)))
	newer := []string{"watch", "lib-name", "lib-ver", "io-thread", "tot-net-in", "tot-net-out", "tot-cmds"}
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
