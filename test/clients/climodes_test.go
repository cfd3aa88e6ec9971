package clients

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/dunlin-cache/dunlin/internal/redistest"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// modeKeys is how many keys redis-cli must find.
const modeKeys = 300

// TestRedisCLIModes checks that the modes of redis-cli that inspect a server with many keys work
// for a cluster behind a proxy. Output that must be the same is compared with redis-server's.
func TestRedisCLIModes(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Parallel()
	needTool(t, "redis-cli")
	dunlin := cli{addr: harness.StartCluster(t, 3, 1).Proxy(0).Addr}
	redis := cli{addr: redistest.Start(t)}
	for _, c := range []cli{dunlin, redis} {
		fillForModes(t, c.addr)
	}

	t.Run("bigkeys", func(t *testing.T) {
		want := summary(t, redis.run(t, nil, "--bigkeys"))
		if got := summary(t, dunlin.run(t, nil, "--bigkeys")); got != want {
			t.Errorf("redis-cli --bigkeys ends with\n%s\nof redis-server with\n%s", got, want)
		}
	})
	t.Run("memkeys", func(t *testing.T) {
		got := summary(t, dunlin.run(t, nil, "--memkeys"))
		for _, want := range []string{
			fmt.Sprintf("Sampled %d keys in the keyspace!", modeKeys),
			fmt.Sprintf(`Biggest string found '"mode:%d"' has `, modeKeys),
			fmt.Sprintf("%d strings with ", modeKeys),
		} {
			if !strings.Contains(got, want) {
				t.Errorf("redis-cli --memkeys ends with\n%s\nwithout %q", got, want)
			}
		}
		if strings.Contains(got, "strings with 0 bytes") {
			t.Errorf("redis-cli --memkeys finds no bytes:\n%s", got)
		}
	})
	t.Run("hotkeys", func(t *testing.T) {
		// Like Redis, Dunlin counts uses only under an LFU policy.
		dunlin.want(t, "OK", "CONFIG", "SET", "maxmemory-policy", "allkeys-lfu")
		for range 5 {
			dunlin.run(t, nil, "GET", "mode:7")
		}
		got := summary(t, dunlin.run(t, nil, "--hotkeys"))
		found := regexp.MustCompile(`^Sampled 300 keys in the keyspace!\nhot key found with counter: \d+\tkeyname: "mode:7"`)
		if !found.MatchString(got) {
			t.Errorf("redis-cli --hotkeys ends with\n%s", got)
		}
	})
	t.Run("scan", func(t *testing.T) {
		scan := func(c cli) []string {
			keys := strings.Fields(c.run(t, nil, "--scan", "--pattern", "mode:1?"))
			slices.Sort(keys)
			return slices.Compact(keys)
		}
		if got, want := scan(dunlin), scan(redis); !slices.Equal(got, want) || len(want) != 10 {
			t.Errorf("redis-cli --scan finds %q, at redis-server %q", got, want)
		}
	})
	t.Run("stat", func(t *testing.T) { statMode(t, dunlin) })
	t.Run("latency", func(t *testing.T) {
		// The fields are minimum, maximum, average and number of samples.
		got := strings.Fields(dunlin.run(t, nil, "--latency", "--raw", "-i", "1"))
		if len(got) != 4 || got[3] == "0" {
			t.Errorf("redis-cli --latency prints %q", got)
		}
	})
}

func fillForModes(t *testing.T, addr string) {
	client := harness.GoRedis(t, &redis.Options{Addr: addr})
	_, err := client.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for i := range modeKeys {
			length := 10 * (i + 1)
			if i+1 == modeKeys {
				length *= 2 // so that it is also the biggest by memory, which grows in steps
			}
			p.Set(t.Context(), fmt.Sprint("mode:", i+1), strings.Repeat("x", length), 0)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// summary returns the end of a mode's output. The progress before it depends on the order in which
// keys are found.
func summary(t *testing.T, printed string) string {
	t.Helper()
	progress, end, found := strings.Cut(printed, "-------- summary -------")
	if !found || strings.Contains(progress, "failed") {
		t.Fatalf("redis-cli prints\n%.1000s", printed)
	}
	return strings.TrimSpace(end)
}

// statMode reads the first lines of a mode that never ends: keys, memory, clients, blocked,
// requests, connections.
func statMode(t *testing.T, c cli) {
	ctx, cancel := context.WithTimeout(t.Context(), harness.ReadyTimeout)
	defer cancel()
	host, port, _ := net.SplitHostPort(c.addr)
	// Output that is not a terminal is buffered: it arrives in runs of 4 KiB.
	cmd := exec.CommandContext(ctx, "redis-cli", "-h", host, "-p", port, "--stat", "-i", "0.01")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	harness.EndWithUs(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cancel()
		_ = cmd.Wait()
	}()
	row := regexp.MustCompile(`^(\d+) +([0-9.]+[BKMG]) +(\d+) +\d+ +(\d+) \(\+\d+\) +(\d+)`)
	lines := bufio.NewScanner(out)
	for rows := 0; rows < 3; {
		if !lines.Scan() {
			t.Fatalf("redis-cli --stat ends after %d rows", rows)
		}
		found := row.FindStringSubmatch(lines.Text())
		if found == nil {
			continue // the headings of the columns
		}
		rows++
		if found[1] != strconv.Itoa(modeKeys) || found[3] == "0" {
			t.Errorf("redis-cli --stat shows %q, want %d keys and a client", lines.Text(), modeKeys)
		}
	}
}
