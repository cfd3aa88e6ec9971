package member

import (
	"bytes"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// arguments returns what follows the verb of a request.
func arguments(t testing.TB, request []byte) [][]byte {
	t.Helper()
	var p resp.Parser
	if p.Parse(request) != resp.Done || p.Len() != len(request) {
		t.Fatalf("%q is no request", request)
	}
	return p.Args()[2:]
}

func TestRequestsComeBack(t *testing.T) {
	want := Pipe{Boot: -1, Loop: 3, Kind: Huge, NoTouch: true, Generation: 1 << 63, Version: resp.RESP2, Level: 255}
	secret, nonce := []byte("secret"), NewNonce()
	got, fields, proof, ok := ParsePipe(arguments(t, AppendPipe(nil, want, secret, nonce)))
	if !ok || got != want || !Proves(proof, secret, nonce, fields...) {
		t.Errorf("pipe %+v becomes %+v, %v", want, got, ok)
	}
	later := append(arguments(t, AppendPipe(nil, want, secret, nonce)), []byte("more"), []byte("of it"))
	if got, _, _, ok := ParsePipe(later); !ok || got != want {
		t.Errorf("a pipe of a later level becomes %+v, %v", got, ok)
	}
	fields, proof = ParsePeer(arguments(t, AppendPeer(nil, 7, secret, nonce)))
	if !Proves(proof, secret, nonce, fields...) || string(fields[0]) != "7" {
		t.Errorf("peer becomes %q", fields)
	}
	piece := Piece{1 << 63, 3, MaxPiece}
	if got, ok := ParseFetch(arguments(t, AppendFetch(nil, piece))); !ok || got != piece {
		t.Errorf("piece %v becomes %v, %v", piece, got, ok)
	}
	if epoch, ok := ParseRetry(arguments(t, AppendRetry(nil, 8))[0]); !ok || epoch != 8 {
		t.Errorf("retry of epoch 8 becomes %d, %v", epoch, ok)
	}
	slot, watched, requests, ok := ParseExec(arguments(t, AppendQueued(AppendWatched(AppendExec(nil, 5, 1, 1),
		3, []byte("k"), []byte("v")), []byte("PING"))))
	if !ok || slot != 5 || len(watched) != 2 || len(requests) != 1 {
		t.Fatalf("exec becomes %d %q %q, %v", slot, watched, requests, ok)
	}
	if database, version, ok := CutWatched(watched[1]); !ok || database != 3 || string(version) != "v" {
		t.Errorf("the version v of a key of database 3 becomes %q of database %d, %v", version, database, ok)
	}
}

// TestWaited: a request says for how long its command has waited, to the microsecond, in any database.
func TestWaited(t *testing.T) {
	for _, want := range []Prefix{
		{Waited: time.Microsecond}, {Database: 3, Waited: 1500 * time.Millisecond}, {15, (1<<53 - 1) * time.Microsecond},
	} {
		request := append(AppendWaited(AppendDatabase(nil, want.Database), want.Waited+time.Microsecond/2), "*1\r\n"...)
		for whole := len(request) - len("*1\r\n"); whole > 0; whole-- {
			got, n, ok := CutPrefix(request[:whole])
			if !ok || n != whole || whole == len(request)-4 && got != want {
				t.Errorf("%d bytes of the prefix %v are %v, %v, with %d bytes", whole, want, got, ok, n)
			}
		}
		if _, n, _ := CutPrefix(request); string(request[n:]) != "*1\r\n" {
			t.Errorf("%q stands behind the prefix %v", request[n:], want)
		}
	}
	if got, _, ok := CutPrefix(AppendWaited(nil, -time.Second)); !ok || got.Waited != 0 {
		t.Errorf("a time that has not come yet is %v, %v", got, ok)
	}
	if p, _, ok := CutPrefix([]byte("@\x00\x20\x00\x00\x00\x00\x00\x00")); ok {
		t.Errorf("too long a time is %v", p)
	}
}

func TestDatabases(t *testing.T) {
	for database := range uint8(ring.MaxDatabases) {
		request := append(AppendDatabase(nil, database), "*1\r\n"...)
		got, n, ok := CutPrefix(request)
		if !ok || got != (Prefix{Database: database}) || string(request[n:]) != "*1\r\n" {
			t.Errorf("a request of database %d is one of %v, %v, with %q before it", database, got, ok, request[:n])
		}
	}
	if _, n, ok := CutPrefix([]byte("#")); !ok || n != 1 {
		t.Errorf("the beginning of a prefix is %d bytes, %v", n, ok)
	}
	if _, n, ok := CutPrefix(nil); !ok || n != 0 {
		t.Errorf("nothing begins with a prefix of %d bytes, %v", n, ok)
	}
	for _, malformed := range []string{"#\x00*1", "#\x10*1", "##", "#1"} {
		if p, _, ok := CutPrefix([]byte(malformed)); ok {
			t.Errorf("%q is %v", malformed, p)
		}
	}
	for _, malformed := range []string{"#", "#\x00v", "#\x10v"} {
		if database, _, ok := CutWatched([]byte(malformed)); ok {
			t.Errorf("the version %q is of database %d", malformed, database)
		}
	}
	if database, version, ok := CutWatched(nil); !ok || database != 0 || len(version) > 0 {
		t.Errorf("the version that no key has is %q of database %d, %v", version, database, ok)
	}
}

func TestTakenComesBack(t *testing.T) {
	var held ring.PartitionSet
	held.Add(4095)
	for _, want := range []Taken{{Epoch: 4, Name: "n1@7"}, {4, "n1@7", held}} {
		whole := AppendTaken(nil, &want)
		if got, err := parseTaken(whole); err != nil || got != want {
			t.Errorf("%+v becomes %+v, %v", want, got, err)
		}
	}
	for _, reply := range []string{
		"+OK\r\n", "+OK x n1@7\r\n", ":1\r\n", "*2\r\n", "*2\r\n+OK 4 n1@7\r\n", "*2\r\n+OK 4 n1@7\r\n$1\r\nx\r\n",
		"*1\r\n+OK 4 n1@7\r\n", "*3\r\n+OK 4 n1@7\r\n:1\r\n:2\r\n", "*2\r\n+OK 4 n1@7", "",
	} {
		if got, err := parseTaken([]byte(reply)); err == nil {
			t.Errorf("%q is taken for %+v", reply, got)
		}
	}
}

func TestMalformedRequests(t *testing.T) {
	split := func(words ...string) (args [][]byte) {
		for _, w := range words {
			args = append(args, []byte(w))
		}
		return args
	}
	for _, args := range [][][]byte{
		split("x", "0", "common", "1", "2", ""), split("1", "x", "common", "1", "2", ""),
		split("1", "0", "other", "1", "2", ""),
		split("1", "0", "common", "-1", "2", ""), split("1", "0", "common", "1", "4", ""), split("", "", "", "", "", ""),
		split("1", "0", "common", "1", "2", "", "256"), split("1", "0", "common", "1", "2", "", "x"),
	} {
		if _, _, _, ok := ParsePipe(args); ok {
			t.Errorf("PIPE %q was taken", args)
		}
	}
	for _, args := range [][][]byte{split("x", "0", "1"), split("1", "-1", "1"),
		split("1", "0", "1048577"), split("1", "0", "")} {
		if _, ok := ParseFetch(args); ok {
			t.Errorf("FETCH %q was taken", args)
		}
	}
	for _, args := range [][][]byte{split("16384", "0"), split("-1", "0"), split("0", "-1"),
		split("0", "1", "k"), split("0", "x")} {
		if _, _, _, ok := ParseExec(args); ok {
			t.Errorf("EXEC %q was taken", args)
		}
	}
	if _, _, ok := ParseEach(split("short", "DBSIZE")); ok {
		t.Error("EACH of 5 bytes of partitions was taken")
	}
}

func TestClassify(t *testing.T) {
	for reply, want := range map[string]Instead{
		"-MOVED 1 h:1\r\n": Moved, "-DUNLINWAIT 7\r\n": Wait, "-DUNLINWAIT\r\n": Wait, "-CLUSTERDOWN Hash slot not served\r\n": Wait,
		"-DUNLINLARGE 1 2\r\n": LargeReply, "-DUNLINLATER 1\r\n": Later, "-ERR MOVED\r\n": Reply, "-MOVEDx 1 h:1\r\n": Reply, "+MOVED\r\n": Reply, "-\r\n": Reply, "": Reply,
	} {
		if got := Classify([]byte(reply)); got != want {
			t.Errorf("%q is %d, want %d", reply, got, want)
		}
	}
	if !Moved.Refused() || !Wait.Refused() || Reply.Refused() || LargeReply.Refused() || Later.Refused() {
		t.Error("other answers than refusals are refusals")
	}
	for reply, want := range map[string]uint64{"-DUNLINWAIT 7\r\n": 7, "-DUNLINWAIT\r\n": 0,
		"-DUNLINWAIT x\r\n": 0, "-CLUSTERDOWN 7\r\n": 0} {
		if got := WaitEpoch([]byte(reply)); got != want {
			t.Errorf("%q names epoch %d, want %d", reply, got, want)
		}
	}
	for reply, want := range map[string]string{
		"-MOVED 4095 h:1\r\n": "h:1", "-MOVED 16384 h:1\r\n": "", "-MOVED 1\r\n": "", "-MOVED x h:1\r\n": "", "-MOVED 1 h:1 x\r\n": "",
	} {
		if _, got := ParseMoved([]byte(reply)); got != want {
			t.Errorf("%q leads to %q, want %q", reply, got, want)
		}
	}
	for reply, want := range map[string]bool{
		"-DUNLINLARGE 1 2\r\n": true, "-DUNLINLARGE 18446744073709551615 536870930\r\n": true,
		"-DUNLINLARGE 1\r\n": false, "-DUNLINLARGE\r\n": false, "-DUNLINLARGE 1 -2\r\n": false, "-DUNLINLARGE 1 0\r\n": false,
		"-DUNLINLARGE 1 2 3\r\n": false, "-DUNLINLARGE x 2\r\n": false, "-DUNLINLARGE 1 99999999999999999999\r\n": false, "-ERR x\r\n": false,
	} {
		if _, _, is := ParseTicket([]byte(reply)); is != want {
			t.Errorf("%q is a ticket: %v", reply, is)
		}
	}
}

// A command that is answered later, and the push that completes it.
func TestLater(t *testing.T) {
	for reply, want := range map[string]bool{
		"-DUNLINLATER 0\r\n": true, "-DUNLINLATER 18446744073709551615\r\n": true,
		"-DUNLINLATER 1 5-0 6-0\r\n": true,
		"-DUNLINLATER\r\n":           false, "-DUNLINLATER -1\r\n": false, "-DUNLINLATER 1 \r\n": false, "-DUNLINLATER x 5-0\r\n": false, "-DUNLINLATER 1": false, "-ERR 1\r\n": false,
	} {
		if _, _, is := ParseLater([]byte(reply)); is != want {
			t.Errorf("%q is a token: %v", reply, is)
		}
	}
	for _, reply := range []string{"+OK\r\n", "$1\r\nx\r\n", "*2\r\n:1\r\n*0\r\n", "_\r\n", "-DUNLINWAIT 4\r\n", "-DUNLINLARGE 1 300000\r\n"} {
		push := append(AppendCompletion(nil, 1<<63), reply...)
		var scan resp.Scanner
		if scan.Scan(append(push, "+next\r\n"...)) != resp.Done || scan.Len() != len(push) {
			t.Errorf("the push %q is not whole", push)
		}
		if token, got, ok := ParsePush(push); !ok || token != 1<<63 || string(got) != reply {
			t.Errorf("the push %q becomes token %d and %q, %v", push, token, got, ok)
		}
	}
	for _, bad := range []string{
		"", ">3\r\n+later\r\n:1\r\n", ">2\r\n+later\r\n:1\r\n", ">3\r\n+other\r\n:1\r\n+OK\r\n", ">3\r\n+later\r\n:x\r\n+OK\r\n",
		">3\r\n+later\r\n:-1\r\n+OK\r\n", ">3\r\n+later\r\n:1\r\n+OK\r\n+OK\r\n", ">3\r\n+later\r\n:1\r\n>1\r\n+x\r\n", "*3\r\n+later\r\n:1\r\n+OK\r\n",
	} {
		if _, _, ok := ParsePush([]byte(bad)); ok {
			t.Errorf("the push %q was taken", bad)
		}
	}
	for reply, want := range map[string][2]bool{
		"+OK\r\n": {false, true}, "+OK later\r\n": {true, true}, "+OK more\r\n": {}, "-ERR x\r\n": {}, "": {},
	} {
		if later, ok := ParseWelcome([]byte(reply)); later != want[0] || ok != want[1] {
			t.Errorf("the welcome %q becomes %v, %v", reply, later, ok)
		}
	}
}

func TestCursor(t *testing.T) {
	c := CursorAt(4095, 1<<40-1)
	if c.Partition() != 4095 || c.Position() != 1<<40-1 || c >= EndOfScan || uint64(EndOfScan) >= 1<<53 {
		t.Errorf("the last cursor is %d, %d", c.Partition(), c.Position())
	}
	if got, ok := ParseCursor(c.Append(nil)); !ok || got != c {
		t.Errorf("cursor %d becomes %d, %v", c, got, ok)
	}
	start := StopAt(0, 0)
	if back, ok := ParseCursor(start.Append(nil)); start == 0 || !ok || back != start || start.Partition() != 0 || start.Position() != 0 {
		t.Errorf("the start is %d, at %d of partition %d", start, start.Position(), start.Partition())
	}
	if StopAt(0, 1<<32-1) >= start || start >= StopAt(1, 0) || StopAt(3, 4) != CursorAt(3, 4) {
		t.Error("stops are in another order than what they stop before")
	}
	if EndOfScan.Partition() != ring.Partitions {
		t.Errorf("the end lies in partition %d", EndOfScan.Partition())
	}
	for in, want := range map[string]Cursor{
		"": 0, "0": 0, "-0": 0, "+1": 1, "007": 7, "18446744073709551615": EndOfScan, "-1": EndOfScan,
		"-18446744073709551615": 1, "00000000000000000000000000007": 7, "0000000000000000000000000000": 0,
	} {
		if got, ok := ParseCursor([]byte(in)); !ok || got != want {
			t.Errorf("cursor %q becomes %d, %v; want %d", in, got, ok, want)
		}
	}
	long := bytes.Repeat([]byte("1"), 1<<20)
	if allocs := testing.AllocsPerRun(10, func() { ParseCursor(long) }); allocs > 0 {
		t.Errorf("a long text that is no cursor is copied: %v allocations", allocs)
	}
	for _, bad := range []string{"x", "1.0", " 1", "1 ", "0x1", "1_0", "+", "-", "--1", "+-1", "18446744073709551616", "-18446744073709551616"} {
		if _, ok := ParseCursor([]byte(bad)); ok {
			t.Errorf("cursor %q was taken", bad)
		}
	}
	for _, want := range []Cursor{0, c, EndOfScan} {
		reply := append(AppendStop(nil, want), "*1\r\n$1\r\nk\r\n"...)
		if stop, keys, ok := ParseStop(reply); !ok || stop != want || string(keys) != "$1\r\nk\r\n" {
			t.Errorf("a stop at %d becomes %d %q, %v", want, stop, keys, ok)
		}
	}
}

// FuzzReplies feeds every decoder of replies: none may panic, and accepted values have the promised
// form.
func FuzzReplies(f *testing.F) {
	all := ring.AllPartitions()
	f.Add(append(AppendCovered(nil, &all), "+OK\r\n"...))
	f.Add(append(AppendStop(nil, 5), "*0\r\n"...))
	f.Add(AppendReport(nil, &ring.Report{Version: ring.Version{Epoch: 1, Issuer: "a@1"}}))
	f.Add(AppendMoved(nil, 1, "h:1"))
	f.Add(AppendWait(nil, 1))
	f.Add(AppendTicket(nil, 1, 1))
	f.Add(AppendLater(nil, 1, []byte("5-0")))
	f.Add(append(AppendCompletion(nil, 1), "*1\r\n+OK\r\n"...))
	f.Fuzz(func(t *testing.T, reply []byte) {
		Classify(reply)
		WaitEpoch(reply)
		if p, _ := ParseMoved(reply); p >= ring.Partitions {
			t.Errorf("moved to partition %d", p)
		}
		if _, size, ok := ParseTicket(reply); ok && (size < 1 || size >= 1<<40) {
			t.Errorf("a ticket of %d bytes", size)
		}
		ParseLater(reply)
		ParseWelcome(reply)
		if _, inner, ok := ParsePush(reply); ok && (len(inner) == 0 || inner[0] == '>') {
			t.Errorf("a push completes with %q", inner)
		}
		ParseCursor(reply)
		var scan resp.Scanner
		if scan.Scan(reply) != resp.Done || scan.Len() != len(reply) {
			return // decoders get whole replies only
		}
		ParseAnswer(reply)
		if stop, _, ok := ParseStop(reply); ok && stop > EndOfScan {
			t.Errorf("stops at %d", stop)
		}
		if r, err := parseReport("a", reply); (r == nil) == (err == nil) {
			t.Errorf("a report %v and an error %v", r, err)
		}
	})
}

// FuzzArguments feeds the decoders of requests.
func FuzzArguments(f *testing.F) {
	f.Add(AppendPipe(nil, Pipe{Kind: Common, Version: resp.RESP2}, nil, nil))
	f.Add(AppendQueued(AppendExec(nil, 1, 0, 1), []byte("PING")))
	f.Add(AppendFetch(nil, Piece{1, 2, 3}))
	f.Fuzz(func(t *testing.T, request []byte) {
		var p resp.Parser
		if p.Parse(request) != resp.Done || len(p.Args()) < 8 {
			return // the table of commands refuses requests with fewer arguments
		}
		args := p.Args()[2:]
		if pipe, _, _, ok := ParsePipe(args); ok && pipe.Kind >= Kinds {
			t.Errorf("pipe of kind %d", pipe.Kind)
		}
		if piece, ok := ParseFetch(args); ok && (piece.Offset < 0 || piece.Count < 0 || piece.Count > MaxPiece) {
			t.Errorf("piece %+v", piece)
		}
		if slot, watched, _, ok := ParseExec(args); ok && (slot >= ring.Slots || len(watched)%2 != 0) {
			t.Errorf("transaction of slot %d that watches %q", slot, watched)
		}
		ParseEach(args)
	})
}

// TestNoTicket: a reply that is no ticket is not looked through.
func TestNoTicket(t *testing.T) {
	reply := bytes.Repeat([]byte(":1\r\n"), 100_000)
	if _, _, ok := ParseTicket(reply); ok {
		t.Error("numbers are a ticket")
	}
	if n := testing.AllocsPerRun(10, func() { ParseTicket(reply) }); n != 0 {
		t.Errorf("a reply of %d bytes allocates %v times", len(reply), n)
	}
}
