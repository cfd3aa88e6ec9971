package command

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// differences lists where the table differs from Redis 7.0 on purpose, by "name property", with the
// reason. A listed difference that does not exist is an error too.
var differences = map[string]string{
	"zrank arity":    "7.2 added WITHSCORE",
	"zrevrank arity": "7.2 added WITHSCORE",

	"command|getkeys arity":         "7.2 allows commands without arguments",
	"command|getkeysandflags arity": "7.2 allows commands without arguments",

	"blmove flags":     "7.2 allows blocking commands in scripts",
	"blpop flags":      "7.2 allows blocking commands in scripts",
	"brpop flags":      "7.2 allows blocking commands in scripts",
	"brpoplpush flags": "7.2 allows blocking commands in scripts",
	"bzpopmax flags":   "7.2 allows blocking commands in scripts",
	"bzpopmin flags":   "7.2 allows blocking commands in scripts",
	"wait flags":       "7.2 allows blocking commands in scripts, and counts it as one",
	"wait categories":  "7.2 counts it as a blocking command",

	"cluster|info flags":   "7.2 answers while loading",
	"cluster|myid flags":   "7.2 answers while loading",
	"cluster|nodes flags":  "7.2 answers while loading",
	"cluster|shards flags": "7.2 answers while loading",
	"cluster|slots flags":  "7.2 answers while loading",

	"multi flags": "later versions flag what MULTI refuses to queue",
	"watch flags": "later versions flag what MULTI refuses to queue",

	"sinterstore keys": "7.0 says RW; like the other stores, it overwrites unseen",
}

// TestAgainstServer compares every row with a real server's description of the command, if both
// know it.
func TestAgainstServer(t *testing.T) {
	server := realServer(t)
	if !strings.Contains(server.do("INFO", "server").(string), "redis_version:7.0.") {
		t.Skip("the installed redis-server is not 7.0, whose differences are listed")
	}
	seen := map[string]bool{}
	differ := func(c *Command, property, got, want string) {
		t.Helper()
		key := c.Name + " " + property
		if got == want {
			return
		}
		seen[key] = true
		if differences[key] == "" {
			t.Errorf("%s: table says %s, server %s", key, got, want)
		}
	}
	compared := 0
	var compare func(info []any)
	compare = func(info []any) {
		name := info[0].(string)
		c := find(name)
		if c == nil {
			t.Errorf("the server's command %q has no row", name)
			return
		}
		compared++
		differ(c, "arity", fmt.Sprint(c.Arity), fmt.Sprint(info[1]))
		differ(c, "flags", fmt.Sprint(c.Flags.Names()), fmt.Sprint(info[2]))
		differ(c, "range", fmt.Sprint(c.First, c.Last, c.Step), fmt.Sprint(info[3], info[4], info[5]))
		differ(c, "categories", fmt.Sprint(c.Categories()), fmt.Sprint(info[6]))
		differ(c, "keys", describeRow(c.Keys), describeServer(info[8].([]any)))
		for _, sub := range info[9].([]any) {
			compare(sub.([]any))
		}
	}
	for _, info := range server.do("COMMAND").([]any) {
		compare(info.([]any))
	}
	for key := range differences {
		if !seen[key] {
			t.Errorf("listed difference %q is none", key)
		}
	}
	t.Logf("%d rows compared", compared)
}

// find returns the row of a full name.
func find(name string) *Command {
	container, own, isSub := strings.Cut(name, "|")
	c := Lookup([]byte(container))
	if c != nil && isSub {
		return c.Sub([]byte(own))
	}
	return c
}

// describeRow writes key specs as one line each.
func describeRow(keys []KeySpec) string {
	var b strings.Builder
	for _, k := range keys {
		fmt.Fprintf(&b, "\n%v", k.Use.Names())
		switch k.Begin {
		case BeginIndex:
			fmt.Fprintf(&b, " index [index %d]", k.Index)
		case BeginKeyword:
			fmt.Fprintf(&b, " keyword [keyword %s startfrom %d]", k.Keyword, k.Index)
		case BeginUnknown:
			fmt.Fprintf(&b, " unknown []")
		}
		switch k.Find {
		case FindRange:
			fmt.Fprintf(&b, " range [lastkey %d keystep %d limit %d]", k.Last, k.Step, k.Limit)
		case FindKeyNum:
			fmt.Fprintf(&b, " keynum [keynumidx %d firstkey %d keystep %d]", k.NumIdx, k.FirstKey, k.Step)
		case FindUnknown:
			fmt.Fprintf(&b, " unknown []")
		}
	}
	return b.String()
}

// describeServer writes the server's key specs in the same form.
func describeServer(keys []any) string {
	var b strings.Builder
	for _, k := range keys {
		field := fields(k)
		begin, found := fields(field["begin_search"]), fields(field["find_keys"])
		fmt.Fprintf(&b, "\n%v %v %v %v %v", field["flags"],
			begin["type"], begin["spec"], found["type"], found["spec"])
	}
	return b.String()
}

// fields turns a flat list of names and values into a map.
func fields(list any) map[string]any {
	m := map[string]any{}
	for pair := range slices.Chunk(list.([]any), 2) {
		m[pair[0].(string)] = pair[1]
	}
	return m
}
