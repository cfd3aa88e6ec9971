package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	redigo "github.com/gomodule/redigo/redis"
	"github.com/redis/go-redis/v9"

	"github.com/dunlin-cache/dunlin/internal/conversation"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// TestSettings checks that flags win over variables, and variables over the file.
func TestSettings(t *testing.T) {
	t.Parallel()
	n := harness.NewMember(t, "node", "flag-id")
	file := writeFile(t, "settings.yaml", strings.Join([]string{
		"# shared by nodes and proxies: keys of other commands are welcome",
		"id: file-id",
		"listen: 127.0.0.1:1", // a port that no process may bind
		"gossip: " + n.Gossip,
		"admin: 127.0.0.1:2",
		"cluster: file-cluster",
		"memory: 64mb",
		"eviction: noeviction",
		"join:",
		"  - " + n.Gossip,
		"nodes: 5",
	}, "\n"))
	n.Env = []string{"DUNLIN_CONFIG=" + file, "DUNLIN_ID=env-id", "DUNLIN_LISTEN=127.0.0.1:3",
		"DUNLIN_ADMIN=" + n.Admin, "DUNLIN_CLUSTER=env-cluster"}
	n.Run("node", "--id", "flag-id", "--listen", n.Addr)
	// The node is not ready until it has given up waiting for others.
	var s harness.Status
	harness.Eventually(t, harness.ReadyTimeout, "the node shows itself", func() bool {
		s, _ = n.Status()
		return len(s.Members) == 1
	})
	got := fmt.Sprintf("id %s, cluster %s, memory %d", s.Members[0].ID, s.Cluster.Name, s.Members[0].MemoryMax)
	if want := "id flag-id, cluster env-cluster, memory 67108864"; got != want {
		t.Errorf("settings are %s, want %s", got, want)
	}
	harness.DialWire(t, n.Addr).Want("CONFIG GET maxmemory", "1) \"maxmemory\"\n2) \"67108864\"")
	harness.DialWire(t, n.Addr).Want("CONFIG GET maxmemory-policy", "1) \"maxmemory-policy\"\n2) \"noeviction\"")
}

// TestRefusedSettings checks that a process with senseless settings ends at once, with a sentence
// that says what to do.
func TestRefusedSettings(t *testing.T) {
	t.Parallel()
	short := writeFile(t, "short", "secret\n")
	misspelt := writeFile(t, "misspelt.yaml", "max-clients: 5\n")
	for _, x := range []struct {
		args, env, says string
	}{
		{"node --memory lots", "", "--memory"},
		{"node --listen 6380", "", `"6380" is not host:port`},
		{"node --eviction lru", "", `--eviction: unknown eviction policy "lru": want allkeys, volatile-ttl or noeviction`},
		{"node --copies 3", "", "--copies 3: want 1 or 2"},
		{"local --nodes 0", "", "--nodes 0: want 1 to"},
		{"proxy --memory 1gb", "", "unknown flag: --memory"},
		{"proxy", "DUNLIN_MAXCLIENTS=many", `"maxclients".*many`},
		{"proxy --config " + misspelt, "", `unknown setting "max-clients"`},
		{"proxy --config /nonexistent.yaml", "", "cannot read settings"},
		{"node --listen 0.0.0.0:6380", "", "not a loopback address.*--secret-file.*--insecure"},
		{"node --join 192.0.2.1:7946", "", "--join 192.0.2.1:7946 is not a loopback address"},
		{"node --secret-file " + short, "", "it has a line of 6 bytes, and each line is a secret of at least 16"},
		{"node --secret-file /nonexistent", "", "cannot read --secret-file: open /nonexistent"},
		{"node --requirepass x", "", "a password for clients needs --secret-file"},
		{"proxy --insecure", "DUNLIN_REQUIREPASS_FILE=" + short, "a password for clients needs --secret-file"},
		{"local --requirepass-file /nonexistent", "", "cannot read --requirepass-file: open /nonexistent"},
		{"local --requirepass x --requirepass-file y", "", "exclude each other"},
		{"status --admin 127.0.0.1:1", "", "cannot read status"},
	} {
		cmd := exec.CommandContext(t.Context(), harness.Binary(t), strings.Fields(x.args)...)
		harness.EndWithUs(cmd)
		cmd.Env = append(harness.CleanEnviron(), x.env)
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		stuck := time.AfterFunc(harness.ReadyTimeout, func() { _ = cmd.Process.Kill() })
		err := cmd.Wait()
		stuck.Stop()
		if err == nil || cmd.ProcessState.ExitCode() != 1 || !regexp.MustCompile(x.says).MatchString(out.String()) {
			t.Errorf("%s dunlin %s: %v, says\n%s\nwant exit code 1 and %q", x.env, x.args, err, out.String(), x.says)
		}
		if lines := strings.Count(out.String(), "\n"); lines > 1 {
			t.Errorf("dunlin %s says more than a sentence:\n%s", x.args, out.String())
		}
	}
}

const password = "pass word\"\\"

// TestPasswordAndSecret checks that a cluster with a password and a secret serves, over all nodes,
// clients and members that know them, and no others.
func TestPasswordAndSecret(t *testing.T) {
	t.Parallel()
	secret := writeFile(t, "secret", "0123456789abcdef0123456789abcdef\n")
	c := harness.StartClusterWith(t, harness.StartOptions{Nodes: 2, Proxies: 1,
		Flags: []string{"--secret-file", secret}, Env: []string{"DUNLIN_REQUIREPASS=" + password}})
	proxy, node := c.Proxy(0), c.Node(0)

	for _, m := range c.Members {
		w := harness.DialWire(t, m.Addr)
		w.Want("PING", "(error) NOAUTH Authentication required.")
		w.Want("GET k", "(error) NOAUTH Authentication required.")
		w.Want("AUTH wrong", "(error) WRONGPASS invalid username-password pair or user is disabled.")
		w.Want("HELLO 3 AUTH default wrong", "(error) WRONGPASS invalid username-password pair or user is disabled.")
		w.Want("MGET a b", "(error) NOAUTH Authentication required.")
		w.Want("DUNLIN TABLE", internalRefusal(m))
		w.Want(`AUTH "pass word\"\\"`, "OK")
		w.Want("PING", "PONG")
	}
	t.Run("go-redis", func(t *testing.T) {
		harness.Converse(t, "go-redis", harness.GoRedisDoer(harness.GoRedis(t, &redis.Options{Addr: proxy.Addr, Password: password})))
	})
	t.Run("go-redis cluster, node", func(t *testing.T) {
		client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{node.Addr}, Password: password})
		defer client.Close()
		harness.Converse(t, "cluster", harness.GoRedisDoer(client))
	})
	t.Run("wrong password", func(t *testing.T) {
		err := harness.GoRedis(t, &redis.Options{Addr: proxy.Addr, Password: "wrong"}).Ping(t.Context()).Err()
		if err == nil || !strings.Contains(err.Error(), "WRONGPASS") {
			t.Errorf("go-redis: %v", err)
		}
		if conn, err := redigo.Dial("tcp", proxy.Addr, redigo.DialPassword("wrong")); err == nil {
			conn.Close()
			t.Error("redigo connects with a wrong password")
		}
	})
	t.Run("stranger", func(t *testing.T) { strangerStaysOut(t, c) })
}

// internalRefusal is the error for a client that tries a command between members.
func internalRefusal(m *harness.Member) string {
	if m.Role == "proxy" {
		return "(error) ERR unknown command 'DUNLIN', with args beginning with: 'TABLE' "
	}
	return "(error) NOAUTH Authentication required."
}

// strangerStaysOut checks that a node with another secret cannot join, and that the members
// continue.
func strangerStaysOut(t *testing.T, c *harness.Cluster) {
	epoch := c.Converge(harness.ReadyTimeout)
	stranger := harness.NewMember(t, "node", "stranger")
	stranger.Flags = []string{"--join", c.Node(0).Gossip, "--secret-file",
		writeFile(t, "other", "another secret of enough bytes")}
	stranger.Launch()
	harness.Eventually(t, harness.ReadyTimeout, "the stranger tries to join", func() bool {
		log, _ := os.ReadFile(c.Node(0).Logged)
		return strings.Contains(string(log), "decrypt")
	})
	for _, m := range c.Members {
		s, err := m.Status()
		if err != nil || len(s.Cluster.Peers) != len(c.Members) || s.Cluster.Epoch < epoch {
			t.Errorf("%s: %v, epoch %d (was %d), members %v", m.ID, err, s.Cluster.Epoch, epoch, s.Cluster.Peers)
		}
	}
}

// TestMaxClients checks that one more client of this machine is let in, that the next one gets Redis's
// error, and that the others continue.
func TestMaxClients(t *testing.T) {
	t.Parallel()
	c := harness.StartCluster(t, 2, 1, "--maxclients", "3")
	proxy := c.Proxy(0).Addr
	var welcome []*harness.Wire
	for range 3 {
		w := harness.DialWire(t, proxy)
		w.Want("PING", "PONG")
		welcome = append(welcome, w)
	}
	harness.DialWire(t, proxy).Want("PING", "PONG") // an operator on this machine
	// The test sends nothing: bytes sent after the refusal could make the system drop the refusal.
	refused := harness.DialWire(t, proxy)
	if got := conversation.Text(refused.Next()); got != "(error) ERR max number of clients reached" {
		t.Errorf("one too many hears %s", got)
	}
	if got := conversation.Text(refused.Next()); got != "(closed)" {
		t.Errorf("and then %s", got)
	}
	for _, w := range welcome {
		w.Want("SET k v", "OK")
	}
	welcome[0].Conn.Close()
	harness.Eventually(t, harness.ReplyTimeout, "a place is free again", func() bool {
		w := harness.DialWire(t, proxy)
		return conversation.Text(w.Do("PING")) == "PONG"
	})
}

func writeFile(t *testing.T, name, content string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
