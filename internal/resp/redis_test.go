package resp

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/redistest"
)

const (
	sentinel = "*2\r\n$4\r\nECHO\r\n$8\r\nsentinel\r\n"
	answered = "$8\r\nsentinel\r\n"
)

// converse sends in to Redis and returns all answers until Redis closes the connection or answers
// the sentinel. The sentinel is sent behind in unless Redis should have closed the connection by
// then.
func converse(t *testing.T, addr, in string, closes bool) string {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	if !closes {
		in += sentinel
	}
	if _, err := io.WriteString(conn, in); err != nil {
		t.Fatal(err)
	}
	var out []byte
	for chunk := make([]byte, 4096); closes || !strings.HasSuffix(string(out), answered); {
		n, err := conn.Read(chunk)
		out = append(out, chunk[:n]...)
		if err == io.EOF || errors.Is(err, syscall.ECONNRESET) {
			break
		}
		if err != nil {
			t.Fatalf("%.80q: after the answer %q: %v", in, out, err)
		}
	}
	return string(out)
}

// expected returns what a Redis that knows only ECHO must answer if Parser is right about in,
// whether the stream is broken then, and how much of in decides that.
func expected(p *Parser, in string) (out string, broken bool, used int) {
	begin, buf := 0, []byte(in)
	for end := 1; end <= len(buf); end++ {
		switch p.Parse(buf[begin:end]) {
		case Malformed:
			return out + string(AppendError(nil, p.Err())), true, end
		case Done:
			out += string(echo(p.Args()))
			begin = end
		}
	}
	return out, false, begin
}

func echo(args [][]byte) []byte {
	switch {
	case len(args) == 0:
		return nil
	case !strings.EqualFold(string(args[0]), "echo"):
		panic(fmt.Sprintf("BUG: this test can only ECHO, not %q", args[0]))
	case len(args) != 2:
		return AppendError(nil, "ERR wrong number of arguments for 'echo' command")
	default:
		return AppendBulk(nil, args[1])
	}
}

// TestParserAgreesWithRedis sends the same bytes to Parser and to a real Redis.
func TestParserAgreesWithRedis(t *testing.T) {
	addr := redistest.Start(t)
	agrees := func(in string, l Limits) {
		t.Helper()
		var p Parser
		p.SetLimits(l)
		want, broken, used := expected(&p, in)
		if !broken {
			want += answered
		}
		// Bytes behind the error are not sent: Redis would close without reading them, and the
		// kernel would discard the answer.
		if got := converse(t, addr, in[:used], broken); got != want {
			t.Errorf("%.80q:\nRedis answers %q\nwe expect     %q", in, got, want)
		}
	}
	for _, c := range brokenRequests {
		agrees(strings.ReplaceAll(c.in, "PING\r\nECHO", "ECHO"), DefaultLimits)
	}
	for _, in := range requestCases {
		if strings.HasPrefix(in, "ECHO") && !strings.Contains(in, "PING") {
			agrees(in, DefaultLimits)
		}
	}
	agrees("*0\r\n*-1\r\n*-9\r\n\r\n\n  \t\r\n", DefaultLimits)

	// Random lines of all bytes that matter when a line is split into words.
	random := rand.New(rand.NewPCG(1, 2))
	pieces := []string{
		" ", " ", "\t", "\v", "\r", "a", "b", "\xff",
		`"`, `"`, `'`, `'`, `\`, `\x4`, `\x41`, `\n`, `\'`, `\"`,
	}
	for range 1500 {
		in := "ECHO"
		for range random.IntN(12) {
			in += pieces[random.IntN(len(pieces))]
		}
		if plainWord([]byte(in)) == len("ECHO") && strings.IndexAny(in[4:], " \t\r") == 0 {
			agrees(in+"\r\n", DefaultLimits)
		}
	}

	converse(t, addr, "CONFIG SET requirepass secret\r\n", false)
	agrees("*11\r\n", UnauthenticatedLimits)
	agrees("*2147483648\r\n", UnauthenticatedLimits)
	agrees("*2\r\n$4\r\nAUTH\r\n$16385\r\n", UnauthenticatedLimits)
	agrees("*2\r\n$4\r\nAUTH\r\n$536870913\r\n", UnauthenticatedLimits)
}
