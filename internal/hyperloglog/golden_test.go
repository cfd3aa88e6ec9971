package hyperloglog

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/redistest"
)

// golden is a line of testdata/values.txt: the value that redis-server 7.0.15 has after PFADD of
// element:0, element:1... and PFCOUNT. Values are in hex, long ones as their SHA-256.
type golden struct {
	elements int
	count    int64
	value    string
}

func goldens(t *testing.T) (all []golden) {
	t.Helper()
	text, err := os.ReadFile("testdata/values.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var g golden
		if _, err := fmt.Sscan(line, &g.elements, &g.count, &g.value); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		all = append(all, g)
	}
	return all
}

// digest returns a value as it stands in the file.
func digest(value []byte) string {
	if len(value) <= 256 {
		return hex.EncodeToString(value)
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256(value))
}

func TestGoldens(t *testing.T) {
	for _, g := range goldens(t) {
		value := AppendEmpty(nil)
		for i := range g.elements {
			value, _ = add(t, value, fmt.Sprintf("element:%d", i))
		}
		n, err := Count(value)
		Cache(must(t, value, err), n)
		if got := digest(value); n != g.count || got != g.value {
			t.Errorf("%d elements: count %d, value\n%s\nwant %d\n%s", g.elements, n, got, g.count, g.value)
		}
	}
}

// TestGoldensWithRedis checks the file against a real redis-server.
func TestGoldensWithRedis(t *testing.T) {
	conn, err := net.Dial("tcp", redistest.Start(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(30 * time.Second))
	for _, g := range goldens(t) {
		fmt.Fprintf(conn, "PFADD g%d\r\n", g.elements)
		expect(t, conn, ":1\r\n")
		for i := range g.elements {
			fmt.Fprintf(conn, "PFADD g%d element:%d\r\n", g.elements, i)
			var changed byte
			if _, err := fmt.Fscanf(conn, ":%c\r\n", &changed); err != nil {
				t.Fatal(err)
			}
		}
		fmt.Fprintf(conn, "PFCOUNT g%d\r\n", g.elements)
		expect(t, conn, fmt.Sprintf(":%d\r\n", g.count))
		var n int
		fmt.Fprintf(conn, "GET g%d\r\n", g.elements)
		if _, err := fmt.Fscanf(conn, "$%d\r\n", &n); err != nil {
			t.Fatal(err)
		}
		value := make([]byte, n+len("\r\n"))
		if _, err := io.ReadFull(conn, value); err != nil {
			t.Fatal(err)
		}
		if got := digest(value[:n]); got != g.value {
			t.Errorf("%d elements: Redis has\n%s\nthe file\n%s", g.elements, got, g.value)
		}
	}
}

func expect(t *testing.T, r io.Reader, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(r, got); err != nil || string(got) != want {
		t.Fatalf("got %q, %v, want %q", got, err, want)
	}
}
