package command

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestKeysAgainstServer compares the keys found with those of COMMAND GETKEYS.
func TestKeysAgainstServer(t *testing.T) {
	server := realServer(t)
	f := func(line string) {
		t.Helper()
		args := strings.Fields(line)
		want := server.do(append([]string{"COMMAND", "GETKEYS"}, args...)...)
		list, ok := want.([]any)
		if !ok {
			t.Errorf("%s: the server says %v", line, want)
			return
		}
		c := find(args[0])
		if c.Subs != nil {
			c = c.Sub([]byte(args[1]))
		}
		got, valid := keysOf(c, args)
		if !valid || fmt.Sprint(got) != fmt.Sprint(list) {
			t.Errorf("%s: got %v (valid %v), want %v", line, got, valid, list)
		}
	}
	f("get k")
	f("set k v ex 10")
	f("mget a b c")
	f("mset a 1 b 2")
	f("mset a 1 b")
	f("del a b")
	f("bitop and dest a b")
	f("rename a b")
	f("object encoding k")
	f("memory usage k")
	f("blpop a b 0")
	f("lmpop 2 a b left")
	f("blmpop 0 2 a b left")
	f("zunionstore dest 2 a b weights 1 2")
	f("sintercard 2 a b limit 1")
	f("eval script 2 a b arg")
	f("fcall f 1 a arg arg")
	f("xread count 2 streams a b 0 0")
	f("XREAD BLOCK 0 STREAMS a 0")
	f("xreadgroup group g c streams a b > >")
	f("georadius k 1 2 3 m")
	f("georadius k 1 2 3 m count 3 STORE dest")
	f("georadiusbymember k m 3 m storedist dest")
	f("sort k")
	f("sort k by store get store desc store dest")
	f("sort k limit 0 store store a Store b")
	f("sort_ro k by p")
	f("lcs a b")
	f("pfmerge dest a b")
	f("xgroup create k g $")
}

func TestKeysInvalid(t *testing.T) {
	f := func(line string, want ...string) {
		t.Helper()
		args := strings.Fields(line)
		got, valid := keysOf(find(args[0]), args)
		if valid || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: got %v (valid %v), want %v and invalid", line, got, valid, want)
		}
	}
	f("get")
	f("rename a", "a")
	f("eval script")
	f("eval script x a")
	f("eval script -1 a")
	f("eval script 2 a")
	f("eval script 9999999 a")
	f("eval script 99999999999999999999 a")
	f("msetex 3 a 1 b 2")
	f("zunionstore dest 3 a b", "dest")
	f("blpop 0")
}

func TestNoKeys(t *testing.T) {
	f := func(line string) {
		t.Helper()
		args := strings.Fields(line)
		got, valid := keysOf(find(args[0]), args)
		if !valid || len(got) != 0 {
			t.Errorf("%s: got %v (valid %v), want none", line, got, valid)
		}
	}
	f("ping")
	f("dbsize")
	f("client id")
	f("eval script 0 a")
	f("xread count 2 b 0")
	f("xread count 2 streams")
}

// keysOf returns the keys of a call by AppendKeys and checks that FirstKey
// agrees.
func keysOf(c *Command, words []string) (keys []string, valid bool) {
	args := request(words...)
	positions, valid := c.AppendKeys(nil, args)
	for _, p := range positions {
		keys = append(keys, words[p])
	}
	first := c.FirstKey(args)
	if len(positions) > 0 && positions[0] != first || len(positions) == 0 && valid && first != 0 {
		keys = append(keys, fmt.Sprintf("FirstKey says %d", first))
	}
	return keys, valid
}

// FuzzKeys checks that, whatever the arguments, all positions are within them, and FirstKey is one
// of the positions if there are any.
func FuzzKeys(f *testing.F) {
	for _, line := range []string{
		"get k", "mset a 1 b", "eval s 2 a b", "xread streams a b 0 0", "blpop a 0",
		"migrate h p  0 1 KEYS a", "sort k store d", "zunionstore d 9999999 a", "msetex 2 a 1 b 2",
	} {
		name, rest, _ := strings.Cut(line, " ")
		f.Add(uint16(Lookup([]byte(name)).ID), rest)
	}
	f.Fuzz(func(t *testing.T, id uint16, rest string) {
		c := ByID(1 + ID(id)%(NumIDs-1))
		args := request(append(strings.Split(c.Name, "|"), strings.Split(rest, " ")...)...)
		for n := range len(args) + 1 {
			checkPositions(t, c, args[:n])
		}
	})
}

func checkPositions(t *testing.T, c *Command, args [][]byte) {
	t.Helper()
	first := c.FirstKey(args)
	if first != 0 && first >= len(args) {
		t.Fatalf("%s: first key %d of %d arguments %q", c.Name, first, len(args), args)
	}
	positions, valid := c.AppendKeys(nil, args)
	found := false
	for _, p := range positions {
		if p <= 0 || p >= len(args) {
			t.Fatalf("%s: key %d of %d arguments %q", c.Name, p, len(args), args)
		}
		found = found || p == first
	}
	if valid && found != (first != 0) {
		t.Fatalf("%s: first key %d, keys %v of %q", c.Name, first, positions, args)
	}
	runs, last := c.KeyRuns(args), 0
	for p := range args {
		if is := slices.Contains(positions, p); runs.Has(p) != is {
			t.Fatalf("%s: argument %d of %q is a key: %t, in the list %v", c.Name, p, args, runs.Has(p), positions)
		} else if is {
			last = p
		}
	}
	if runs.Count() != len(positions) || runs.Last() != last {
		t.Fatalf("%s: %d keys up to %d, want %v", c.Name, runs.Count(), runs.Last(), positions)
	}
}
