package main

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// settingsOf runs a command line of `dunlin node` up to the point where it
// would start, and returns the settings.
func settingsOf(t *testing.T, args ...string) (*options, error) {
	t.Helper()
	var got *options
	root := newRoot()
	o := &options{}
	c := serverCommand("trial", "", o, func(_ context.Context, o *options, _ *console) error {
		got = o
		return nil
	})
	o.addMember(c.Flags())
	o.addNode(c.Flags())
	root.AddCommand(c)
	root.SetArgs(append([]string{"trial"}, args...))
	err := root.ExecuteContext(t.Context())
	return got, err
}

func writeFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "settings")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestSettingsPrecedence(t *testing.T) {
	file := writeFile(t, "id: from-file\nmemory: 3gb\nmaxclients: 7\njoin: [a:1, b:2]\ninsecure: true\nnodes: 5\n")
	t.Setenv("DUNLIN_ID", "from-env")
	t.Setenv("DUNLIN_MEMORY", "2gb")
	t.Setenv("DUNLIN_EVICTION", "volatile-lru")
	t.Setenv("DUNLIN_SECRET_FILE", "/some/file")

	got, err := settingsOf(t, "--config", file, "--id", "from-flag")
	if err != nil {
		t.Fatal(err)
	}
	if got.id != "from-flag" {
		t.Errorf("id = %q, want that of the flag", got.id)
	}
	if got.memory != 2<<30 {
		t.Errorf("memory = %s, want that of the variable", got.memory.String())
	}
	if got.secretFile != "/some/file" {
		t.Errorf("secret-file = %q, want that of the variable", got.secretFile)
	}
	if got.eviction != "volatile-lru" {
		t.Errorf("eviction = %q, want that of the variable", got.eviction)
	}
	if got.maxClients != 7 || !got.insecure {
		t.Errorf("maxclients, insecure = %d, %v, want those of the file", got.maxClients, got.insecure)
	}
	if want := []string{"a:1", "b:2"}; !reflect.DeepEqual(got.join, want) {
		t.Errorf("join = %q, want %q", got.join, want)
	}
	if got.listen != "127.0.0.1:6380" {
		t.Errorf("listen = %q, want the default", got.listen)
	}
}

func TestSettingsFileFromVariable(t *testing.T) {
	t.Setenv("DUNLIN_CONFIG", writeFile(t, "copies: 1\n"))
	got, err := settingsOf(t)
	if err != nil || got.copies != 1 {
		t.Fatalf("settings = %+v, %v, want copies 1", got, err)
	}
}

func TestSettingsListVariable(t *testing.T) {
	t.Setenv("DUNLIN_JOIN", "10.0.0.1:7946,10.0.0.2:7946")
	got, err := settingsOf(t)
	if want := []string{"10.0.0.1:7946", "10.0.0.2:7946"}; err != nil || !reflect.DeepEqual(got.join, want) {
		t.Fatalf("join = %q, %v, want %q", got.join, err, want)
	}
}

// Every wrong setting is refused with its own name in the error.
func TestSettingsRefused(t *testing.T) {
	f := func(want string, args ...string) {
		t.Helper()
		_, err := settingsOf(t, args...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", args, err, want)
		}
	}
	f(`"max-clients"`, "--config", writeFile(t, "max-clients: 3\n"))
	f(`"memory"`, "--config", writeFile(t, "memory: lots\n"))
	f("cannot read settings", "--config", "/does/not/exist")
	f("cannot read settings", "--config", writeFile(t, "a: [b\n"))
	f("--memory", "--memory", "12x")
	f("--memory", "--memory", "0")
	f("--listen", "--listen", "6380")
	f("--copies", "--copies", "3")
	f("want allkeys, volatile-ttl or noeviction", "--eviction", "lru")
	f("want redis or valkey", "--dump-for", "dragonfly")
	f("--maxclients", "--maxclients", "0")
	f("--databases", "--databases", "0")
	f("--databases", "--databases", "17")
	f("--pinned-databases", "--pinned-databases", "0-3")
	f("--pinned-databases 7-8", "--pinned-databases", "7-8", "--databases", "8")
	f("--loops", "--loops", "-1")
	f("--busy-poll", "--busy-poll", "2ms")
	f("--id", "--id", "node\n1")
	f("--id", "--id", "node\xff")
	f("--min-members", "--min-members", "0")
	f("--drain-timeout", "--drain-timeout", "-1s")
	f("unknown flag", "--multi", "relaxed")
	f("--log-level", "--log-level", "loud")
	f("--log-format", "--log-format", "xml")
	f("unknown flag", "--nodes", "3")
	f("unknown command", "stray")
}

func TestEveryCommandHasItsFlags(t *testing.T) {
	all := "admin admin-token-file cluster config databases debug-commands insecure log-format log-level loops maxclients pprof requirepass requirepass-file secret-file "
	f := func(command, want string) {
		t.Helper()
		c, _, err := newRoot().Find([]string{command})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range strings.Fields(want) {
			if c.Flags().Lookup(name) == nil {
				t.Errorf("dunlin %s has no flag --%s", command, name)
			}
		}
	}
	f("node", all+"id listen gossip join advertise memory pinned-databases eviction copies dump-for move-rate drain-timeout min-members")
	f("proxy", all+"id listen gossip join advertise multi")
	f("local", all+"nodes listen multi memory pinned-databases eviction copies dump-for")
	f("status", "admin admin-token-file json")
	f("drain", "admin admin-token-file secret-file timeout undo")
	f("rebalance", "admin admin-token-file secret-file timeout pause resume")
}

func TestNodeTimeoutRefused(t *testing.T) {
	for _, command := range []string{"proxy", "local"} {
		for _, wrong := range []string{"0s", "99ms", "6s"} {
			root := newRoot()
			root.SetArgs([]string{command, "--node-timeout", wrong})
			if err := root.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "--node-timeout "+wrong) {
				t.Errorf("%s --node-timeout %s: error %v, want one that names it", command, wrong, err)
			}
		}
	}
}
