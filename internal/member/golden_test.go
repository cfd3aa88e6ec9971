package member

import (
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// TestGoldenBytes checks that members' messages have not changed a byte, because members of
// different builds work together during an upgrade.
func TestGoldenBytes(t *testing.T) {
	var some ring.PartitionSet
	some.Add(0)
	some.Add(4095)
	set := "$512\r\n" + string(some[:]) + "\r\n"
	pipe := Pipe{Boot: 7, Loop: 1, Kind: Fetching, Generation: 9, Version: resp.RESP3}
	report := &ring.Report{Version: ring.Version{Epoch: 3, Issuer: "n1@7"}, Synced: some}
	for what, c := range map[string]struct {
		got  []byte
		want string
	}{
		"challenge": {AppendRequest(nil, VerbChallenge), "*2\r\n$6\r\nDUNLIN\r\n$9\r\nCHALLENGE\r\n"},
		"pipe": {AppendPipe(nil, pipe, nil, nil),
			"*8\r\n$6\r\nDUNLIN\r\n$4\r\nPIPE\r\n$1\r\n7\r\n$1\r\n1\r\n$5\r\nfetch\r\n$1\r\n9\r\n$1\r\n3\r\n$0\r\n\r\n"},
		"pipe that touches nothing": {AppendPipe(nil, Pipe{Kind: Large, NoTouch: true, Version: resp.RESP2, Level: 6}, nil, nil),
			"*9\r\n$6\r\nDUNLIN\r\n$4\r\nPIPE\r\n$1\r\n0\r\n$1\r\n0\r\n$14\r\nlarge-no-touch\r\n$1\r\n0\r\n$1\r\n2\r\n$0\r\n\r\n$1\r\n6\r\n"},
		"pipe that tracks": {AppendPipe(nil, Pipe{Kind: Common, NoTouch: true, Tracks: true, Version: resp.RESP3, Level: 14}, nil, nil),
			"*9\r\n$6\r\nDUNLIN\r\n$4\r\nPIPE\r\n$1\r\n0\r\n$1\r\n0\r\n$22\r\ncommon-no-touch-tracks\r\n$1\r\n0\r\n$1\r\n3\r\n$0\r\n\r\n$2\r\n14\r\n"},
		"gone":             {AppendGone(nil, Gone{Hash: 1<<64 - 2, Actor: 7}), ">3\r\n+gone\r\n:-2\r\n:7\r\n"},
		"gone by a prefix": {AppendGone(nil, Gone{ByPrefix: true, Key: []byte("k\n"), Actor: 1<<64 - 1}), ">3\r\n+changed\r\n$2\r\nk\n\r\n:-1\r\n"},
		"all gone":         {AppendGone(nil, Gone{All: true}), ">1\r\n+gone\r\n"},
		"all flushed":      {AppendGone(nil, Gone{All: true, Flushed: true}), ">1\r\n+flushed\r\n"},
		"as":               {AppendAs(nil, 7), "*3\r\n$6\r\nDUNLIN\r\n$2\r\nAS\r\n$1\r\n7\r\n"},
		"pipe of a level": {AppendPipe(nil, Pipe{Kind: Common, Version: resp.RESP2, Level: 1}, nil, nil),
			"*9\r\n$6\r\nDUNLIN\r\n$4\r\nPIPE\r\n$1\r\n0\r\n$1\r\n0\r\n$6\r\ncommon\r\n$1\r\n0\r\n$1\r\n2\r\n$0\r\n\r\n$1\r\n1\r\n"},
		"peer":  {AppendPeer(nil, 7, nil, nil), "*4\r\n$6\r\nDUNLIN\r\n$4\r\nPEER\r\n$1\r\n7\r\n$0\r\n\r\n"},
		"level": {AppendLevel(nil), "*3\r\n$6\r\nDUNLIN\r\n$5\r\nLEVEL\r\n$2\r\n24\r\n"},
		"listen": {AppendListen(nil, Listen{Kind: 1, Mode: Follow, Name: []byte("n*"), Count: 2}),
			"*6\r\n$6\r\nDUNLIN\r\n$6\r\nLISTEN\r\n$1\r\n1\r\n$1\r\n2\r\n$2\r\nn*\r\n$1\r\n2\r\n"},
		"topics": {AppendTopics(nil, 4, []Topic{{Boot: 7, Loop: 1, Kind: 2, Name: "n", Count: 3}}),
			"*8\r\n$6\r\nDUNLIN\r\n$6\r\nTOPICS\r\n$1\r\n4\r\n$1\r\n7\r\n$1\r\n1\r\n$1\r\n2\r\n$1\r\nn\r\n$1\r\n3\r\n"},
		"missed": {AppendMissed(nil, 4, &Missed{Kind: 1, Channel: []byte("n"), Message: []byte("m"), By: []Loop{{7, 1}}}),
			"*8\r\n$6\r\nDUNLIN\r\n$6\r\nMISSED\r\n$1\r\n4\r\n$1\r\n1\r\n$1\r\nn\r\n$1\r\nm\r\n$1\r\n7\r\n$1\r\n1\r\n"},
		"gather":  {AppendGather(nil, texts("LCS", "a", "b")), "*5\r\n$6\r\nDUNLIN\r\n$6\r\nGATHER\r\n$3\r\nLCS\r\n$1\r\na\r\n$1\r\nb\r\n"},
		"lend":    {AppendLend(nil, 0, []byte("k"), true), "*5\r\n$6\r\nDUNLIN\r\n$4\r\nLEND\r\n$1\r\n0\r\n$1\r\nk\r\n$1\r\n1\r\n"},
		"lent":    {AppendLent(nil, &Lent{Found: true, Version: []byte("v"), TTL: -1}), "*3\r\n$1\r\nv\r\n:-1\r\n"},
		"cede":    {AppendCede(nil, 0, []byte("k"), []byte("v")), "*5\r\n$6\r\nDUNLIN\r\n$4\r\nCEDE\r\n$1\r\n0\r\n$1\r\nk\r\n$1\r\nv\r\n"},
		"reserve": {AppendReserve(nil, 0, texts("LLEN", "k")...), "*5\r\n$6\r\nDUNLIN\r\n$7\r\nRESERVE\r\n$1\r\n0\r\n$4\r\nLLEN\r\n$1\r\nk\r\n"},
		"within":  {AppendWithin(nil, IsCopied, texts("LPOP", "k")...), "*5\r\n$6\r\nDUNLIN\r\n$6\r\nWITHIN\r\n$1\r\n2\r\n$4\r\nLPOP\r\n$1\r\nk\r\n"},
		"release": {AppendRelease(nil), "*2\r\n$6\r\nDUNLIN\r\n$7\r\nRELEASE\r\n"},
		"return": {AppendReturn(nil, 7, texts("LPUSH", "k", "e")),
			"*6\r\n$6\r\nDUNLIN\r\n$6\r\nRETURN\r\n$1\r\n7\r\n$5\r\nLPUSH\r\n$1\r\nk\r\n$1\r\ne\r\n"},
		"popped": {AppendPopped(nil, 12), ">2\r\n+popped\r\n:12\r\n"},
		"heard":  {AppendHeard(nil, Gapped), ":2\r\n"},
		"lost":   {AppendLost(nil, 7), ">2\r\n+lost\r\n:7\r\n"},
		"cancel": {AppendCancel(nil, 7), "*3\r\n$6\r\nDUNLIN\r\n$6\r\nCANCEL\r\n$1\r\n7\r\n"},
		"retry":  {AppendRetry(nil, 18446744073709551615), "*3\r\n$6\r\nDUNLIN\r\n$5\r\nRETRY\r\n$20\r\n18446744073709551615\r\n"},
		"fetch":  {AppendFetch(nil, Piece{1, 2, 3}), "*5\r\n$6\r\nDUNLIN\r\n$5\r\nFETCH\r\n$1\r\n1\r\n$1\r\n2\r\n$1\r\n3\r\n"},
		"watch":  {AppendRequest(nil, VerbWatch, []byte("k")), "*3\r\n$6\r\nDUNLIN\r\n$5\r\nWATCH\r\n$1\r\nk\r\n"},
		"exec": {AppendQueued(AppendWatched(AppendExec(nil, 16383, 1, 1), 0, []byte("k"), []byte("v")), []byte("GET"), []byte("k")),
			"*7\r\n$6\r\nDUNLIN\r\n$4\r\nEXEC\r\n$5\r\n16383\r\n$1\r\n1\r\n$1\r\nk\r\n$1\r\nv\r\n$20\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n\r\n"},
		"watched in another database":          {AppendWatched(nil, 10, []byte("k"), []byte("v")), "$1\r\nk\r\n$3\r\n#\nv\r\n"},
		"of a database":                        {AppendRequest(AppendDatabase(nil, 15), VerbWatch, []byte("k")), "#\x0f*3\r\n$6\r\nDUNLIN\r\n$5\r\nWATCH\r\n$1\r\nk\r\n"},
		"of database 0":                        {AppendDatabase(nil, 0), ""},
		"that has waited":                      {AppendWaited(nil, 1<<20*time.Microsecond+1), "@\x00\x00\x00\x00\x00\x10\x00\x00"},
		"each":                                 {AppendEach(nil, &some, []byte("KEYS"), []byte("*")), "*5\r\n$6\r\nDUNLIN\r\n$4\r\nEACH\r\n" + set + "$4\r\nKEYS\r\n$1\r\n*\r\n"},
		"covered":                              {AppendCovered(nil, &some), "*2\r\n" + set},
		"stop":                                 {AppendStop(nil, CursorAt(1, 2)), "*2\r\n:1099511627778\r\n"},
		"no stop":                              {AppendStop(nil, EndOfScan), "*2\r\n:-1\r\n"},
		"handed":                               {AppendHanded(nil, &some, "n1@7"), "*4\r\n$6\r\nDUNLIN\r\n$6\r\nHANDED\r\n" + set + "$4\r\nn1@7\r\n"},
		"report":                               {AppendReport(nil, report), "*3\r\n:3\r\n$4\r\nn1@7\r\n" + set},
		"taken":                                {AppendTaken(nil, &Taken{Epoch: 4, Name: "n1@7"}), "+OK 4 n1@7\r\n"},
		"taken, but some are held":             {AppendTaken(nil, &Taken{4, "n1@7", some}), "*2\r\n+OK 4 n1@7\r\n" + set},
		"moved":                                {AppendMoved(nil, 16383, "h:1"), "-MOVED 16383 h:1\r\n"},
		"moved to IPv6, for proxies":           {AppendMoved(nil, 1, "[::1]:6380"), "-MOVED 1 [::1]:6380\r\n"},
		"moved to IPv6, for clients":           {AppendClientMoved([]byte("[]"), 1, "[::1]:6380"), "[]-MOVED 1 ::1:6380\r\n"},
		"moved, for clients":                   {AppendClientMoved(nil, 1, "10.0.0.1:6380"), "-MOVED 1 10.0.0.1:6380\r\n"},
		"wait":                                 {AppendWait(nil, 4), "-DUNLINWAIT 4\r\n"},
		"ticket":                               {AppendTicket(nil, 5, 300000), "-DUNLINLARGE 5 300000\r\n"},
		"filled":                               {AppendFilled(nil, Filled{7, 0x8300}), "$8\r\n7 8-9,15\r\n"},
		"none filled":                          {AppendFilled(nil, Filled{Epoch: 7}), "$2\r\n7 \r\n"},
		"later":                                {AppendLater(nil, 18446744073709551615, nil), "-DUNLINLATER 18446744073709551615\r\n"},
		"later, with IDs":                      {AppendLater(nil, 7, []byte("5-0 0-0")), "-DUNLINLATER 7 5-0 0-0\r\n"},
		"push":                                 {append(AppendCompletion(nil, 7), "+OK\r\n"...), ">3\r\n+later\r\n:7\r\n+OK\r\n"},
		"welcome":                              {AppendWelcome(nil, false), "+OK\r\n"},
		"welcome of a node that answers later": {AppendWelcome(nil, true), "+OK later\r\n"},
	} {
		if string(c.got) != c.want {
			t.Errorf("%s is %q, want %q", what, c.got, c.want)
		}
	}
}

// TestEveryVerbHasARow keeps the verbs and the table of commands together.
func TestEveryVerbHasARow(t *testing.T) {
	rows := make(map[string]bool)
	for _, sub := range command.ByID(command.Dunlin).Subs {
		_, name, _ := strings.Cut(sub.Name, "|")
		rows[strings.ToUpper(name)] = true
	}
	verbs := []string{VerbChallenge, VerbPipe, VerbPeer, VerbLevel, VerbCancel, VerbRetry, VerbFetch, VerbListen, VerbClaim, VerbPass, VerbReturn, VerbAs, VerbWatch, VerbExec,
		VerbEach, VerbTable, VerbTake, VerbTopics, VerbMissed, VerbHanded, VerbReport, VerbSettings, VerbConfigure, VerbEmpty, VerbGather, VerbLend, VerbCede, VerbPublish, VerbReserve, VerbWithin, VerbRelease, VerbStream, VerbEffects, VerbValue}
	for _, v := range verbs {
		if !rows[v] {
			t.Errorf("verb %s has no row", v)
		}
		delete(rows, v)
	}
	if len(rows) > 0 {
		t.Errorf("rows without a verb: %v", rows)
	}
}

func TestProof(t *testing.T) {
	secret, nonce := []byte("s"), NewNonce()
	if !Proves(Proof(secret, nonce, []byte("1")), secret, nonce, []byte("1")) {
		t.Error("a proof does not prove")
	}
	if Proves(Proof(secret, nonce, []byte("1")), secret, nonce, []byte("2")) ||
		Proves(Proof(secret, nonce), secret, NewNonce()) || Proves(nil, secret, nonce) {
		t.Error("a proof of something else proves")
	}
	if string(NewNonce()) == string(nonce) {
		t.Error("the same nonce twice")
	}
}

func TestSecrets(t *testing.T) {
	for _, none := range []*Secrets{nil, {}, NewSecrets()} {
		if none.First() != nil || none.ProvedBy(nil, nil) {
			t.Error("no secret proves something")
		}
	}
	older, newer, nonce := []byte("older"), []byte("newer"), NewNonce()
	s := NewSecrets(older, newer)
	if string(s.First()) != "older" || !s.ProvedBy(Proof(older, nonce), nonce) || !s.ProvedBy(Proof(newer, nonce), nonce) {
		t.Error("a secret of the list does not prove")
	}
	if s.Set([][]byte{newer}); string(s.First()) != "newer" || s.ProvedBy(Proof(older, nonce), nonce) {
		t.Error("a secret that was removed proves")
	}
}
