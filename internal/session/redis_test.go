package session

import (
	"bytes"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// realEnd is a real redis-server that runs for one test.
type realEnd struct {
	addr string
	conn net.Conn
}

// startRedis starts a server with one database on a free port of the loopback.
func startRedis(t *testing.T, args ...string) *realEnd {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("there is no redis-server here to compare with")
	}
	port := freePort(t)
	args = append([]string{
		"--port", port, "--bind", "127.0.0.1", "--save", "", "--databases", "1", "--dir", t.TempDir(),
	}, args...)
	cmd := exec.Command(path, args...)
	if err := cmd.Start(); err != nil {
		t.Fatalf("cannot start redis-server: %v", err)
	}
	e := &realEnd{addr: "127.0.0.1:" + port}
	t.Cleanup(func() {
		if e.conn != nil {
			e.conn.Close()
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	e.await(t)
	if version := e.version(t); !strings.HasPrefix(version, "7.") {
		t.Skipf("redis-server is of version %q, want 7 to compare with", version)
	}
	return e
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// await tries until the server accepts.
func (e *realEnd) await(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("tcp", e.addr)
		if err == nil {
			conn.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("redis-server does not listen: %v", err)
		}
	}
}

// version asks the program: the server may want a password.
func (e *realEnd) version(t *testing.T) string {
	out, err := exec.Command("redis-server", "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(out), " v=")
	version, _, _ := strings.Cut(rest, " ")
	return version
}

func (e *realEnd) connect(t *testing.T) {
	t.Helper()
	if e.conn != nil {
		e.conn.Close()
	}
	conn, err := net.Dial("tcp", e.addr)
	if err != nil {
		t.Fatal(err)
	}
	e.conn = conn
}

func (e *realEnd) talk(t *testing.T, request [][]byte, expectClose bool) (reply []byte, closed bool) {
	t.Helper()
	if _, err := e.conn.Write(resp.AppendRequest(nil, request...)); err != nil {
		t.Fatalf("%q: %v", request, err)
	}
	if err := e.conn.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if expectClose {
		reply, err := io.ReadAll(e.conn)
		return reply, err == nil
	}
	var scan resp.Scanner
	buf := make([]byte, 64<<10)
	for scan.Scan(reply) == resp.NeedMore {
		n, err := e.conn.Read(buf)
		reply = append(reply, buf[:n]...)
		if err != nil {
			return reply, true
		}
	}
	return reply, false
}

func (e *realEnd) say(t *testing.T, request string) string {
	t.Helper()
	reply, _ := e.talk(t, words(t, request), false)
	return string(reply)
}

// TestConversationsWithRedis shows that the files say what Redis does.
func TestConversationsWithRedis(t *testing.T) {
	for _, s := range readScripts(t) {
		t.Run(filepath.Base(s.name), func(t *testing.T) {
			var args []string
			if s.password != "" {
				args = append(args, "--requirepass", s.password)
			}
			if s.cluster {
				args = append(args, "--cluster-enabled", "yes")
			}
			s.hold(t, startRedis(t, args...), true)
		})
	}
}

// TestEntriesAsRedis compares how rows are encoded, for one row of each kind
// of key spec. They need not be built.
func TestEntriesAsRedis(t *testing.T) {
	real := startRedis(t)
	f := func(name string) {
		t.Helper()
		for _, hello := range []string{"HELLO 2", "HELLO 3"} {
			real.connect(t)
			real.say(t, hello)
			want := real.say(t, "COMMAND INFO "+name)
			v := resp.Version(hello[6] - '0')
			got := appendEntry(resp.AppendArray(nil, 1), v, command.Lookup([]byte(name)))
			if string(got) != want {
				t.Errorf("%s after %s:\n%q, want\n%q", name, hello, got, want)
			}
		}
	}
	f("get")    // a range
	f("zunion") // a count of keys
	f("xread")  // a keyword
	f("echo")   // no key at all
}

// TestInfoAsRedis: sections in Redis's order, and no field that Redis does not
// have, apart from our own.
func TestInfoAsRedis(t *testing.T) {
	real := startRedis(t)
	real.connect(t)
	real.say(t, "HELLO 3")
	s := testServer("")
	for _, sections := range []string{"", " all", " everything", " default", " nosuch", " server clients", " keyspace CLUSTER"} {
		want := infoFields(real.say(t, "INFO"+sections))
		got := infoFields(string(s.AppendInfo(nil, resp.RESP3, words(t, "INFO"+sections)[1:], Info{})))
		for _, field := range got {
			if !slices.Contains(want, field) && !strings.HasPrefix(field, "dunlin_") {
				t.Errorf("INFO%s shows %q, which Redis does not", sections, field)
			}
		}
		if g, w := headings(got), headings(want); !slices.Equal(g, w) {
			t.Errorf("INFO%s has the sections\n%q, want\n%q", sections, g, w)
		}
	}
}

// infoFields are the names in an INFO text, and its headings.
func infoFields(reply string) (fields []string) {
	_, body, _ := strings.Cut(reply, "txt:")
	for _, line := range strings.Split(strings.TrimSuffix(body, "\r\n"), "\r\n") {
		name, _, _ := strings.Cut(line, ":")
		if name != "" {
			fields = append(fields, name)
		}
	}
	return fields
}

func headings(fields []string) (h []string) {
	for _, f := range fields {
		if strings.HasPrefix(f, "#") {
			h = append(h, f)
		}
	}
	return h
}

// TestClientLineAsRedis: the fields of CLIENT LIST in Redis's order; ours are
// those of 7.4, the real server may be older.
func TestClientLineAsRedis(t *testing.T) {
	real := startRedis(t)
	real.connect(t)
	want := lineFields(real.say(t, "CLIENT INFO"))
	got := lineFields(string(AppendClientLine(nil, testServer("").NewState("a:1", "b:2", 0), 0)))
	newer := []string{"watch", "lib-name", "lib-ver"}
	got = slices.DeleteFunc(got, func(f string) bool { return slices.Contains(newer, f) && !slices.Contains(want, f) })
	if !slices.Equal(got, want) {
		t.Errorf("fields\n%q, want\n%q", got, want)
	}
}

func lineFields(text string) (fields []string) {
	for _, word := range strings.Fields(text) {
		if name, _, ok := strings.Cut(word, "="); ok {
			fields = append(fields, name)
		}
	}
	return fields
}

// TestClusterAsRedis: a node of ours that owns all slots describes itself as a
// real one does. Ids, addresses and the state of the real one differ.
func TestClusterAsRedis(t *testing.T) {
	real := startRedis(t, "--cluster-enabled", "yes", "--cluster-announce-ip", "127.0.0.1")
	real.connect(t)
	if got := real.say(t, "CLUSTER ADDSLOTSRANGE 0 16383"); got != "+OK\r\n" {
		t.Fatalf("ADDSLOTSRANGE: %q", got)
	}
	id := strings.Split(real.say(t, "CLUSTER MYID"), "\r\n")[1]
	ours := NewServer(ServerOptions{Cluster: func() View {
		return View{Table: tableOf(real.addr), Self: "node-0"}
	}})
	for _, hello := range []string{"HELLO 2", "HELLO 3"} {
		e := connected(t, ours)
		e.say(t, hello)
		real.connect(t)
		real.say(t, hello)
		for _, request := range []string{"CLUSTER SLOTS", "CLUSTER SHARDS"} {
			want := strings.ReplaceAll(real.say(t, request), id, NodeID("node-0"))
			if got := e.say(t, request); got != want {
				t.Errorf("%s after %s: %q, want %q", request, hello, got, want)
			}
		}
		// The port of the bus and the epoch are those of the table.
		bus := regexp.MustCompile(`@\d+ myself,master - 0 0 0 `)
		want := strings.ReplaceAll(bodyOf(real.say(t, "CLUSTER NODES")), id, NodeID("node-0"))
		want = bus.ReplaceAllString(want, "@0 myself,master - 0 0 1 ")
		if got := bodyOf(e.say(t, "CLUSTER NODES")); got != want {
			t.Errorf("CLUSTER NODES after %s: %q, want %q", hello, got, want)
		}
		if got, want := infoNames(e.say(t, "CLUSTER INFO")), infoNames(real.say(t, "CLUSTER INFO")); !slices.Equal(got, want) {
			t.Errorf("CLUSTER INFO after %s: %q, want %q", hello, got, want)
		}
	}
}

func infoNames(reply string) (names []string) {
	for _, line := range strings.Split(bodyOf(reply), "\r\n") {
		if name, _, ok := strings.Cut(line, ":"); ok {
			names = append(names, name)
		}
	}
	return names
}

// bodyOf is a bulk or verbatim string without its header.
func bodyOf(reply string) string {
	body, _ := resp.DecodeBulk([]byte(reply))
	return string(bytes.TrimPrefix(body, []byte("txt:")))
}
