package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dunlin-cache/dunlin/internal/freeport"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// startLocal runs `dunlin local` and waits until it is ready.
func startLocal(t *testing.T, flags ...string) *harness.Member {
	t.Helper()
	m := &harness.Member{T: t, Role: "local", ID: "local", Addr: freeRange(t, 4), Admin: harness.FreeAddr(t),
		Logged: filepath.Join(t.TempDir(), "local.log")}
	m.Run(append([]string{"local", "--listen", m.Addr, "--admin", m.Admin}, flags...)...)
	m.WaitReady()
	return m
}

// startThree is startLocal with three nodes, which move nothing. Where the machine is busy, the first table may
// have two of them.
func startThree(t *testing.T) *harness.Member {
	t.Helper()
	m, why := startLocal(t), ""
	harness.Eventually(t, harness.ReadyTimeout, "three nodes serve and move nothing", func() bool {
		s, err := m.Status()
		owners, ready := 0, 0
		for _, p := range s.Cluster.Peers {
			if p.Partitions > 0 {
				owners++
			}
		}
		for _, member := range s.Members {
			if member.Ready {
				ready++
			}
		}
		why = fmt.Sprintf("%d nodes have partitions, %d move, %d of %d members are ready; %v",
			owners, s.Cluster.Moves, ready, len(s.Members), err)
		return err == nil && owners == 3 && s.Cluster.Moves == 0 && ready == len(s.Members)
	}, func() string { return why })
	return m
}

// freeRange returns an address with a free port that n-1 more free ports follow.
func freeRange(t *testing.T, n int) string {
	t.Helper()
	first, err := freeport.ChooseRow(n)
	if err != nil {
		t.Fatal(err)
	}
	return freeport.Loopback(first)
}

func portAfter(addr string, n int) string {
	host, port, _ := net.SplitHostPort(addr)
	p, _ := strconv.Atoi(port)
	return net.JoinHostPort(host, strconv.Itoa(p+n))
}

// dunlin runs a command of the binary and waits for its end.
func dunlin(t *testing.T, args ...string) (stdout string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), harness.Binary(t), args...)
	cmd.Env = harness.CleanEnviron()
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		t.Fatalf("dunlin %q: %v\n%s", args, err, problems.String())
	}
	return out.String()
}

// TestLocal does what a new user does first: one command, a client, a look at the page.
func TestLocal(t *testing.T) {
	t.Parallel()
	m := startThree(t)
	client := harness.GoRedis(t, &redis.Options{Addr: m.Addr})
	for i := range 300 {
		if err := client.Set(t.Context(), fmt.Sprint("key", i), i, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("status", func(t *testing.T) { statusTable(t, m) })
	t.Run("status --json", func(t *testing.T) { statusJSON(t, m) })
	t.Run("nodes", func(t *testing.T) {
		for i := 1; i <= 3; i++ { // on the ports that follow the proxy's
			harness.DialWire(t, portAfter(m.Addr, i)).Want("PING", "PONG")
		}
	})
	t.Run("INFO", func(t *testing.T) { // the process is counted once
		var told int64
		text := client.Info(t.Context(), "memory").Val()
		_, line, _ := strings.Cut(text, "\nused_memory_rss:")
		if _, err := fmt.Sscan(line, &told); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if has := harness.Resident(t, m); told < has/2 || told > 2*has {
			t.Errorf("INFO says that %d bytes are resident, the system %d", told, has)
		}
	})
	t.Run("expiry", func(t *testing.T) { expiry(t, client) })
	t.Run("page", func(t *testing.T) {
		page, err := harness.Get(m.Admin, "/")
		if err != nil || !bytes.Contains(page, []byte("<html")) {
			t.Errorf("the admin page: %v\n%.200s", err, page)
		}
		if _, err := harness.Get(m.Admin, "/healthz"); err != nil {
			t.Error(err)
		}
	})
	if took := m.Term(10 * time.Second); took > 5*time.Second {
		t.Errorf("it ends %v after SIGTERM", took)
	}
}

func statusTable(t *testing.T, m *harness.Member) {
	table := dunlin(t, "status", "--admin", m.Admin)
	for _, pattern := range []string{
		`^cluster dunlin   epoch \d+   3 nodes, 1 proxy   4096 partitions, \d+ with a follower, \d+ moving\n`,
		`\nnode-1 +node +serving .* ` + regexp.QuoteMeta(portAfter(m.Addr, 1)),
		`\nnode-3 +node +serving .* ` + regexp.QuoteMeta(portAfter(m.Addr, 3)),
		`\nproxy +proxy +serving .* ` + regexp.QuoteMeta(m.Addr),
	} {
		if !regexp.MustCompile(pattern).MatchString(table) {
			t.Errorf("dunlin status prints\n%s\nwhich does not match %s", table, pattern)
		}
	}
}

func statusJSON(t *testing.T, m *harness.Member) {
	var s harness.Status
	if err := json.Unmarshal([]byte(dunlin(t, "status", "--json", "--admin", m.Admin)), &s); err != nil {
		t.Fatal(err)
	}
	roles, partitions, keys := map[string]int{}, 0, int64(0)
	for _, x := range s.Members {
		roles[x.Role]++
		partitions += x.Partitions
		keys += x.Keys
		if !x.Ready || x.Epoch != s.Cluster.Epoch || x.Epoch == 0 {
			t.Errorf("%s: ready %v, epoch %d; the cluster's is %d", x.ID, x.Ready, x.Epoch, s.Cluster.Epoch)
		}
		if x.Role == "node" && (x.Partitions == 0 || x.Keys == 0 || x.MemoryMax == 0) {
			t.Errorf("%s has %d partitions, %d keys, a limit of %d bytes", x.ID, x.Partitions, x.Keys, x.MemoryMax)
		}
	}
	if roles["node"] != 3 || roles["proxy"] != 1 || len(s.Cluster.Peers) != 4 {
		t.Errorf("members are %v, peers %v", roles, s.Cluster.Peers)
	}
	if partitions != 4096 || s.Cluster.Partitions != 4096 || keys != 300 {
		t.Errorf("%d partitions of %d, %d keys of 300", partitions, s.Cluster.Partitions, keys)
	}
}

func expiry(t *testing.T, client *redis.Client) {
	ctx := t.Context()
	begin := time.Now()
	if err := client.Set(ctx, "short", "v", 300*time.Millisecond).Err(); err != nil {
		t.Fatal(err)
	}
	left, err := client.PTTL(ctx, "short").Result()
	if expired := time.Since(begin) >= 300*time.Millisecond; err != nil || left <= 0 && !expired || left > 300*time.Millisecond {
		t.Errorf("PTTL is %v, %v, want up to 300ms", left, err)
	}
	harness.Eventually(t, 5*time.Second, "the key expires", func() bool {
		_, err := client.Get(ctx, "short").Result()
		return errors.Is(err, redis.Nil)
	})
	if lived := time.Since(begin); lived < 290*time.Millisecond { // the clock has coarse ticks
		t.Errorf("it expired after %v, want 300ms", lived)
	}
	if n, err := client.Exists(ctx, "short").Result(); err != nil || n != 0 {
		t.Errorf("EXISTS is %d, %v for an expired key", n, err)
	}
}

// TestOrderlyStop sends SIGTERM while clients pipeline. The clients must read only whole and right
// replies in order, and the process must end soon.
func TestOrderlyStop(t *testing.T) {
	t.Parallel()
	harness.SkipUnderRace(t)
	m := startThree(t)
	const keys = 64
	values := make([]string, keys)
	client := harness.GoRedis(t, &redis.Options{Addr: m.Addr})
	for i := range values {
		values[i] = strings.Repeat(fmt.Sprintf("value %d ", i), 1+37*i)
		if err := client.Set(t.Context(), fmt.Sprint("key", i), values[i], 0).Err(); err != nil {
			t.Fatal(err)
		}
	}

	var busy sync.WaitGroup
	var replies atomic.Int64
	const clients = 8
	for range clients {
		w := harness.DialWire(t, m.Addr)
		busy.Go(func() { writeForever(w, keys) })
		busy.Go(func() {
			if err := readWhole(w, values, &replies); err != nil {
				t.Errorf("after SIGTERM: %v", err)
			}
			w.Conn.Close()
		})
	}
	busyFor := func(rounds int64) (broken float64) {
		harness.Eventually(t, harness.ReadyTimeout, "clients are busy", func() bool { return replies.Load() > clients*keys*rounds })
		broken, _ = harness.Scrape(t, m.Admin).Sum("dunlin_proxy_broken_pipes_total")
		return broken
	}
	harness.AwaitLevel(t, m.Addr) // a pipe that opens while the level rises may be refused, and opens again
	if before, after := busyFor(1), busyFor(50); after > before {
		t.Errorf("%v pipes to nodes broke before the stop", after-before)
	}
	took := m.Term(10 * time.Second)
	busy.Wait()
	if took > 5*time.Second {
		t.Errorf("it ends %v after SIGTERM", took)
	}
	t.Logf("%d replies, stopped in %v", replies.Load(), took)
}

// writeForever pipelines GETs of all keys until the connection ends.
func writeForever(w *harness.Wire, keys int) {
	var batch []byte
	for i := range keys {
		batch = resp.AppendRequest(batch, []byte("GET"), fmt.Appendf(nil, "key%d", i))
	}
	for {
		_ = w.Conn.SetWriteDeadline(time.Now().Add(harness.ReplyTimeout))
		if _, err := w.Conn.Write(batch); err != nil {
			return
		}
	}
}

// readWhole reads replies until the connection ends. It returns an error if a reply is wrong or
// incomplete. It reads more slowly than the nodes can send, so that replies wait in every buffer
// when the end comes.
func readWhole(w *harness.Wire, values []string, replies *atomic.Int64) error {
	for i := 0; ; i = (i + 1) % len(values) {
		reply, err := w.Read()
		if len(w.In) > 0 && err != nil {
			return err // the end came within a reply
		}
		if isTimeout(err) {
			return fmt.Errorf("neither reply nor end: %w", err)
		}
		if err != nil {
			return nil
		}
		if got, ok := resp.DecodeBulk(reply); !ok || string(got) != values[i] {
			return fmt.Errorf("GET key%d answers %.100q", i, reply)
		}
		replies.Add(1)
	}
}

func isTimeout(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
}

// TestMetrics checks that the metrics count what clients sent, and that Prometheus can read them.
func TestMetrics(t *testing.T) {
	t.Parallel()
	m := startThree(t)
	w := harness.DialWire(t, m.Addr)
	for i := range 100 {
		w.Want(fmt.Sprintf("SET key%d value", i), "OK")
	}
	for i := range 40 { // 30 of them hit
		w.Do(fmt.Sprintf("GET key%d", i+70))
	}
	w.Want("DEL key0 key1 key2 nothing", "(integer) 3")
	w.Do("NOSUCH")

	var s harness.Samples
	want := []struct {
		name  string
		value float64
	}{
		{`dunlin_proxy_commands_total{command="set"`, 100},
		{`dunlin_proxy_commands_total{command="get"`, 40},
		{`dunlin_proxy_commands_total{command="del"`, 1},
		{`dunlin_proxy_refused_commands_total{`, 1},
		{`dunlin_proxy_clients{`, 1},
		{`dunlin_node_commands_total{command="set"`, 100},
		{`dunlin_node_commands_total{command="get"`, 40},
		{`dunlin_node_hits_total{`, 30},
		{`dunlin_node_misses_total{`, 10},
		{`dunlin_node_keys{`, 97},
		{`dunlin_node_partitions_serving{`, 4096},
		{`dunlin_node_fenced{`, 0},
		{`dunlin_members{member="proxy",role="node"`, 3},
		{`dunlin_loop_panics_total{`, 0},
	}
	missing := ""
	harness.Eventually(t, harness.ReadyTimeout, "metrics count what was sent", func() bool {
		s, missing = harness.Scrape(t, m.Admin), ""
		for _, x := range want {
			if got, ok := s.Sum(x.name); !ok || got != x.value {
				missing += fmt.Sprintf("\n%s: %v (there: %v), want %v", x.name, got, ok, x.value)
			}
		}
		return missing == ""
	}, func() string { return missing })
	if used, _ := s.Sum("dunlin_node_memory_used_bytes"); used < 97*10 {
		t.Errorf("memory in use is %v bytes", used)
	}
}
