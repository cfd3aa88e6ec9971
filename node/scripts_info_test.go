package node

import (
	"strconv"
	"strings"
	"testing"
)

// TestInfoOfScripts: INFO says how many scripts and functions there are, and what they take.
func TestInfoOfScripts(t *testing.T) {
	n := startScripts(t)
	c, running := dial(t, n.Addr()), dial(t, n.Addr())
	figure := func(name string) (value int64) {
		t.Helper()
		c.send("INFO memory")
		_, rest, _ := strings.Cut(string(c.read()), "\r\n"+name+":")
		text, _, _ := strings.Cut(rest, "\r\n")
		value, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Errorf("%s is %q", name, text)
		}
		return value
	}
	want := func(name string, want int64) {
		t.Helper()
		if got := figure(name); got != want {
			t.Errorf("%s is %d, want %d", name, got, want)
		}
	}
	counts := []string{"number_of_cached_scripts", "number_of_functions", "number_of_libraries"}
	for _, name := range counts {
		want(name, 0)
	}
	want("used_memory_scripts", 0)

	c.do(`SCRIPT LOAD "return 1"`)
	c.want(`EVAL "return 2" 0`, "(integer) 2")
	eval := figure("used_memory_scripts_eval")
	want("number_of_cached_scripts", 2)
	mustLoad(t, c, "return 1")
	want("number_of_functions", 1)
	want("number_of_libraries", 1)
	functions := figure("used_memory_functions")
	if eval <= 0 || functions <= 0 {
		t.Errorf("scripts take %d bytes, functions %d", eval, functions)
	}
	want("used_memory_scripts", eval+functions)

	running.send(`EVAL "local s = string.rep('x', 1e6) while true do end" 1 {k}`)
	eventually(t, "the script has taken memory", func() bool { return figure("used_memory_vm_total") > 1e6 })
	eventually(t, "it can be killed", func() bool { return c.do("SCRIPT KILL") == "OK" })
	running.next()
	wantEnded(t, n)

	c.want("SCRIPT FLUSH", "OK")
	c.want("FUNCTION FLUSH", "OK")
	for _, name := range counts {
		want(name, 0)
	}
	want("used_memory_scripts", 0)
}
