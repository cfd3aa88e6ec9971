package main

import (
	"encoding/gob"
	"io"
	"os"
	"strings"
	"testing"
)

func init() {
	cases["echo"] = func(in *gob.Decoder, out *gob.Encoder) error {
		var s string
		if err := in.Decode(&s); err != nil {
			return err
		}
		return out.Encode(s + os.Getenv("ECHO_MORE"))
	}
	cases["dies"] = func(*gob.Decoder, *gob.Encoder) error { return nil }
}

func TestCase(t *testing.T) {
	var got string
	if err := runCase("echo", "a", &got, "ECHO_MORE=b"); err != nil || got != "ab" {
		t.Errorf("a case answers %q, %v: want %q", got, err, "ab")
	}
	if err := runCase("dies", "a", &got); err == nil {
		t.Error("a case that ends without an answer is no error")
	}
}

// TestMain lets the test binary act as a case.
func TestMain(m *testing.M) {
	if !actAsCase() {
		os.Exit(m.Run())
	}
}

// TestTables prints every table in the smallest size, so that the program stays usable.
func TestTables(t *testing.T) {
	for i, table := range tables {
		t.Run(table.name, func(t *testing.T) {
			if i > 0 && testing.Short() {
				t.Skip("all tables take minutes beside the race detector")
			}
			var out strings.Builder
			if err := run(&out, table.name, options{size: tiny, say: io.Discard}); err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(out.String(), "\n"); n < 5 {
				t.Errorf("a table of %d lines:\n%s", n, out.String())
			}
		})
	}
}

func TestPick(t *testing.T) {
	if _, err := pick("nothing"); err == nil {
		t.Error("a table was found that is not there")
	}
}

func TestRedis(t *testing.T) {
	r, err := startRedis("--maxmemory", "100mb")
	if err != nil {
		t.Skip(err)
	}
	defer r.close()
	c, err := r.dial()
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	for _, x := range []struct{ command, reply string }{
		{"SET k value", "OK"}, {"GET k", "value"}, {"GET none", ""}, {"INCR n", "1"}, {"DEL k n", "2"},
	} {
		if reply, err := c.do(strings.Fields(x.command)...); reply != x.reply || err != nil {
			t.Errorf("%s: %q, %v: want %q", x.command, reply, err, x.reply)
		}
	}
	if _, err := c.do("INCR"); err == nil {
		t.Error("an error reply is no error")
	}
	if n, err := residentBytes(r.pid()); n <= 0 || err != nil {
		t.Errorf("redis-server has %d bytes, %v", n, err)
	}
}
