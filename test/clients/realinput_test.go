package clients

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	redigo "github.com/gomodule/redigo/redis"
	"github.com/redis/go-redis/v9"

	"github.com/dunlin-cache/dunlin/test/harness"
)

const (
	// A pipeline ends with this many commands or with this many bytes. Without the second limit, a
	// few large files would make it wait for tens of megabytes.
	pipelineCommands = 100
	pipelineBytes    = 1 << 20
	// maxTree bounds the loaded bytes if a distribution's tree is much larger than the 146 MB of Go
	// 1.26. Everything that fits is loaded, and the log says what is left out.
	maxTree = 400 << 20
)

// TestRealInput stores the Go source tree in a cluster: thousands of real files, from empty ones to
// megabytes, text and binary. One client writes them in pipelines through one proxy, and another
// reads them through another proxy.
func TestRealInput(t *testing.T) {
	if testing.Short() || harness.RaceEnabled {
		t.Skip("moves some hundred megabytes")
	}
	begin := time.Now()
	tree := readTree(t)
	c := harness.StartClusterWith(t, harness.StartOptions{Nodes: 3, Proxies: 2, NodeFlags: []string{"--memory", "512mb"}})
	writer := harness.GoRedis(t, &redis.Options{Addr: c.Proxy(0).Addr})
	reader := &redigo.Pool{MaxIdle: 8, DialContext: func(ctx context.Context) (redigo.Conn, error) {
		return redigo.DialContext(ctx, "tcp", c.Proxy(1).Addr)
	}}
	defer reader.Close()

	inParallel(t, "written by go-redis in pipelines", tree, func(part []file) error { return writePipelined(writer, part) })
	wantSize(t, writer, len(tree))
	inParallel(t, "read by redigo in pipelines", tree, func(part []file) error { return readPipelined(reader, part) })
	inParallel(t, "read by MGET", tree, func(part []file) error { return readMany(reader, part) })
	scanAll(t, writer, tree)
	var left atomic.Int64
	inParallel(t, "deleted by halves", tree, func(part []file) error {
		left.Add(int64(len(part) - len(part)/2))
		return deleteHalf(writer, reader, part)
	})
	wantSize(t, writer, int(left.Load()))
	sum := int64(0)
	for _, n := range c.ByRole("node") {
		s, err := n.Status()
		if err != nil {
			t.Fatal(err)
		}
		if s.Members[0].Keys == 0 {
			t.Errorf("node %s has no keys", n.ID)
		}
		sum += s.Members[0].Keys
	}
	if sum != left.Load() {
		t.Errorf("the nodes have %d keys, want %d", sum, left.Load())
	}
	if err := writer.FlushAll(t.Context()).Err(); err != nil {
		t.Error(err)
	}
	wantSize(t, writer, 0)
	t.Logf("%v in all", time.Since(begin).Round(time.Millisecond))
}

type file struct {
	key     string
	content []byte
}

// readTree reads every regular file of the source tree. bin and pkg have compiled files and do not
// belong to it.
func readTree(t *testing.T) (tree []file) {
	t.Helper()
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatalf("cannot find GOROOT: %v", err)
	}
	root := strings.TrimSpace(string(out))
	total, left, empty, binaries := 0, 0, 0, 0
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (path == filepath.Join(root, "bin") || path == filepath.Join(root, "pkg")) {
			return fs.SkipDir
		}
		if !d.Type().IsRegular() {
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if total+len(content) > maxTree {
			left++
			return nil
		}
		total += len(content)
		if len(content) == 0 {
			empty++
		}
		if bytes.IndexByte(content, 0) >= 0 {
			binaries++
		}
		tree = append(tree, file{strings.TrimPrefix(path, root), content})
		return nil
	})
	if err != nil {
		t.Fatalf("cannot read the Go source tree: %v", err)
	}
	t.Logf("%d files of %s, %d MB, %d empty, %d with zero bytes; %d left out",
		len(tree), root, total>>20, empty, binaries, left)
	if len(tree) < 5000 || empty == 0 || binaries == 0 {
		t.Fatal("this is no Go source tree")
	}
	return tree
}

// inParallel calls do with batches of the tree in four goroutines.
func inParallel(t *testing.T, what string, tree []file, do func(part []file) error) {
	t.Helper()
	begin := time.Now()
	parts, failed := make(chan []file), make(chan error, 4)
	var workers sync.WaitGroup
	for range cap(failed) {
		workers.Go(func() {
			for part := range parts {
				if err := do(part); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	go func() {
		workers.Wait()
		close(failed)
	}()
	for len(tree) > 0 {
		n, size := 0, 0
		for n < len(tree) && n < pipelineCommands && size < pipelineBytes {
			size += len(tree[n].content)
			n++
		}
		select {
		case parts <- tree[:n]:
			tree = tree[n:]
		case err := <-failed:
			t.Fatalf("%s: %v", what, err)
		}
	}
	close(parts)
	for err := range failed {
		t.Fatalf("%s: %v", what, err)
	}
	t.Logf("%s in %v", what, time.Since(begin).Round(time.Millisecond))
}

func writePipelined(client *redis.Client, part []file) error {
	replies, err := client.Pipelined(context.Background(), func(p redis.Pipeliner) error {
		for _, f := range part {
			p.Set(context.Background(), f.key, f.content, 0)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, r := range replies {
		if got := r.(*redis.StatusCmd).Val(); got != "OK" {
			return fmt.Errorf("SET %s answers %q", part[i].key, got)
		}
	}
	return nil
}

// readPipelined compares every byte, and so the order of the replies.
func readPipelined(pool *redigo.Pool, part []file) error {
	conn := pool.Get()
	defer conn.Close()
	for _, f := range part {
		if err := conn.Send("GET", f.key); err != nil {
			return err
		}
		if err := conn.Send("STRLEN", f.key); err != nil {
			return err
		}
	}
	if err := conn.Flush(); err != nil {
		return err
	}
	for _, f := range part {
		got, err := redigo.Bytes(conn.Receive())
		if err != nil {
			return fmt.Errorf("GET %s: %w", f.key, err)
		}
		if err := f.compare(got); err != nil {
			return err
		}
		if n, err := redigo.Int(conn.Receive()); err != nil || n != len(f.content) {
			return fmt.Errorf("STRLEN %s: %d, %v, want %d", f.key, n, err, len(f.content))
		}
	}
	return nil
}

// readMany reads all keys in one request, with one missing key among them.
func readMany(pool *redigo.Pool, part []file) error {
	conn := pool.Get()
	defer conn.Close()
	missing := len(part) / 2
	keys := slices.Insert(keysOf(part), missing, any("no such file"))
	got, err := redigo.ByteSlices(conn.Do("MGET", keys...))
	if err != nil {
		return err
	}
	if len(got) != len(keys) || got[missing] != nil {
		return fmt.Errorf("MGET of %d keys answers %d values, %q for the missing one", len(keys), len(got), got[missing])
	}
	for i, value := range slices.Delete(got, missing, missing+1) {
		if value == nil {
			return fmt.Errorf("MGET does not find %s", part[i].key)
		}
		if err := part[i].compare(value); err != nil {
			return err
		}
	}
	n, err := redigo.Int(conn.Do("EXISTS", keys...))
	if err != nil || n != len(part) {
		return fmt.Errorf("EXISTS counts %d, %v, want %d", n, err, len(part))
	}
	return nil
}

// scanAll checks that SCAN returns every key, and nothing else.
func scanAll(t *testing.T, client *redis.Client, tree []file) {
	t.Helper()
	begin := time.Now()
	missing := map[string]bool{}
	for _, f := range tree {
		missing[f.key] = true
	}
	found, calls := map[string]bool{}, 0
	for cursor := uint64(0); calls == 0 || cursor != 0; calls++ {
		page, next, err := client.Scan(t.Context(), cursor, "", 100).Result()
		if err != nil {
			t.Fatalf("SCAN %d: %v", cursor, err)
		}
		for _, k := range page {
			found[k] = true
			delete(missing, k)
		}
		if cursor = next; calls > len(tree) {
			t.Fatal("SCAN does not end")
		}
	}
	if len(missing) > 0 || len(found) != len(tree) {
		t.Errorf("SCAN finds %d keys of %d, and misses %d", len(found), len(tree), len(missing))
	}
	t.Logf("found by SCAN in %d calls and %v", calls, time.Since(begin).Round(time.Millisecond))
}

// deleteHalf deletes keys through one proxy and checks them through the other.
func deleteHalf(writer *redis.Client, reader *redigo.Pool, part []file) error {
	all := keysOf(part)
	gone := all[:len(all)/2]
	if len(gone) > 0 {
		names := make([]string, len(gone))
		for i, k := range gone {
			names[i] = k.(string)
		}
		n, err := writer.Del(context.Background(), names...).Result()
		if err != nil || int(n) != len(gone) {
			return fmt.Errorf("DEL counts %d, %w, want %d", n, err, len(gone))
		}
	}
	conn := reader.Get()
	defer conn.Close()
	n, err := redigo.Int(conn.Do("EXISTS", all...))
	if err != nil || n != len(all)-len(gone) {
		return fmt.Errorf("EXISTS counts %d, %w, want %d of %d", n, err, len(all)-len(gone), len(all))
	}
	return nil
}

func keysOf(part []file) []any {
	keys := make([]any, len(part))
	for i, f := range part {
		keys[i] = f.key
	}
	return keys
}

func (f file) compare(got []byte) error {
	if bytes.Equal(got, f.content) {
		return nil
	}
	for i := range min(len(got), len(f.content)) {
		if got[i] != f.content[i] {
			return fmt.Errorf("%s differs at byte %d of %d", f.key, i, len(f.content))
		}
	}
	return fmt.Errorf("%s has %d bytes, want %d", f.key, len(got), len(f.content))
}

func wantSize(t *testing.T, client *redis.Client, want int) {
	t.Helper()
	if got, err := client.DBSize(t.Context()).Result(); err != nil || int(got) != want {
		t.Errorf("DBSIZE is %d, %v, want %d", got, err, want)
	}
}
