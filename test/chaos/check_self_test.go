package chaos

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// TestCheckNotices checks that the checker's sessions notice each kind of wrong reply. The server
// is a map that falsifies one reply.
func TestCheckNotices(t *testing.T) {
	t.Parallel()
	f := func(what, wrong string, falsify func(store map[string]string, args []string) (reply string, falsified bool)) {
		t.Helper()
		x := &Rig{T: t, tolerated: map[string]int{}}
		judgedPipeline(x, serveMap(t, falsify))
		found := fmt.Sprint(x.violations, x.Absences, x.miscounts, x.tooLate)
		if wrong == "" && found != "[] [] [] []" || !strings.Contains(found, wrong) {
			t.Errorf("%s: found %.300s, want %q", what, found, wrong)
		}
	}
	// on falsifies the reply to one kind of command.
	on := func(line, reply string) func(map[string]string, []string) (string, bool) {
		return func(_ map[string]string, args []string) (string, bool) {
			return reply, strings.HasPrefix(strings.Join(args, " "), line)
		}
	}
	bulk := func(s string) string { return string(resp.AppendBulk(nil, []byte(s))) }
	value := func(key string, seq uint64) string { return bulk(string(AppendValue(nil, key, seq))) }

	f("all is right", "", on("NEVER", ""))
	f("another key's value", "no value of it", on("GET a", value("b", 1)))
	f("a stale value", "older than write 2", on("GET a", value("a", 1)))
	f("a value never written", "never sent", on("GET a", value("a", 9)))
	f("a value of a later write", "which is not write 2", on("GET a", value("a", 3)))
	f("a damaged value", "damaged", on("GET a", bulk("a=2=xx")))
	f("nothing", "which is not write 2", on("GET a", "$-1\r\n"))
	f("null of another version", "answers", on("GET a", "_\r\n"))
	f("a missing reply", "no value of it", on("GET a", ""))
	f("a missing last reply", "no reply", on("ECHO last", ""))
	f("a surplus reply", "surplus", on("SET b", "+OK\r\n+OK\r\n+OK\r\n"))
	f("a surplus last reply", "surplus", on("ECHO last", bulk("last")+"+OK\r\n"))
	f("a malformed reply", "malformed", on("GET a", "?\r\n"))
	f("an unexpected error", "no client expects", on("GET a", "-ERR engine on fire\r\n"))
	f("keys swapped", "no value of it", on("MGET", "*2\r\n"+value("b", 1)+value("a", 3)))
	f("a key too few", "answers", on("MGET", "*1\r\n"+value("a", 3)))
	f("a deleted key that is there", "1 keys too many", on("EXISTS", ":2\r\n"))
	f("a kept key that is missing", "{EXISTS [{b ", on("EXISTS", ":0\r\n"))
	f("a database that is not selected", "GET b in another database", on("SELECT 1", "+OK\r\n"))
	f("a database that is refused", "SELECT 1 answers", on("SELECT 1", "-ERR DB index is out of range\r\n"))
	f("a deletion that finds nothing", "{DEL [{a ", on("DEL", ":0\r\n"))
	f("a write that is ignored", "older than write 2", func(store map[string]string, args []string) (string, bool) {
		return "+OK\r\n", strings.Join(args[:2], " ") == "SET a" && store["a"] != ""
	})
	f("a deletion that is ignored", "older than write 4", on("DEL", ":1\r\n"))
	f("an increment executed twice", "executed twice", func(store map[string]string, args []string) (string, bool) {
		if args[0] == "INCR" {
			store["c"] += "x"
		}
		return "", false
	})
}

// judgedPipeline queues a pipeline of commands, all of whose replies are judged.
func judgedPipeline(x *Rig, addr string) {
	l, err := harness.DialLink(addr)
	if err != nil {
		x.T.Fatal(err)
	}
	defer l.Conn.Close()
	s := &Session{X: x, name: "s", Link: l, Rng: rand.New(rand.NewPCG(1, 1))}
	d := &diver{mixer: &mixer{Session: s}}
	a, b, c := NewHistory("a"), NewHistory("b"), &counter{key: "c"}
	s.set(a)
	s.set(b)
	s.set(a)
	if !s.Exchange() {
		return
	}
	s.Get(a, true)
	s.set(a)
	s.mget([]*History{a, b})
	s.incr(c)
	s.incr(c)
	d.remove("DEL", []*History{a})
	d.count("EXISTS", []*History{a, b})
	s.absent(b)
	s.selects(a.Key)
	s.Get(a, true)
	s.Add(func([]byte) {}, "ECHO", "last")
	s.Exchange()
}

// serveMap is a server that knows the commands of judgedPipeline, and closes the connection after
// it.
func serveMap(t *testing.T, falsify func(store map[string]string, args []string) (string, bool)) (addr string) {
	var mu sync.Mutex
	store, database := map[string]string{}, "0"
	return harness.ServeLines(t, func(said string) (reply string, closes bool) {
		mu.Lock()
		defer mu.Unlock()
		args := strings.Fields(strings.Trim(said, "[]"))
		if reply, falsified := falsify(store, args); falsified {
			return reply, args[0] == "ECHO"
		}
		get := func(key string) string {
			if v, ok := store[key]; ok && database == "0" {
				return string(resp.AppendBulk(nil, []byte(v)))
			}
			return "$-1\r\n"
		}
		switch args[0] {
		case "SELECT":
			database = args[1]
			return "+OK\r\n", false
		case "SET":
			store[args[1]] = args[2]
			return "+OK\r\n", false
		case "GET":
			return get(args[1]), false
		case "MGET":
			return "*2\r\n" + get(args[1]) + get(args[2]), false
		case "INCR":
			store["c"] += "x"
			return fmt.Sprintf(":%d\r\n", len(store["c"])), false
		case "EXISTS":
			return fmt.Sprintf(":%d\r\n", len(store)-min(1, len(store["c"]))), false
		case "DEL":
			delete(store, args[1])
			return ":1\r\n", false
		}
		return string(resp.AppendBulkString(nil, args[1])), true // ECHO last
	})
}
