package member

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

func TestLendComesBack(t *testing.T) {
	for _, versioned := range []bool{false, true} {
		database, key, got, ok := ParseLend(arguments(t, AppendLend(nil, 3, []byte("k\n"), versioned)))
		if !ok || database != 3 || string(key) != "k\n" || got != versioned {
			t.Errorf("LEND becomes %d %q %v, %v", database, key, got, ok)
		}
	}
	database, key, version, ok := ParseCede(arguments(t, AppendCede(nil, 3, []byte("k"), []byte("1.2"))))
	if !ok || database != 3 || string(key) != "k" || string(version) != "1.2" {
		t.Errorf("CEDE becomes %d %q %q, %v", database, key, version, ok)
	}
	for _, bad := range [][]string{{"x", "k", "0"}, {"-1", "k", "0"}, {"65536", "k", "0"}, {"0", "k", "2"}, {"0", "k", ""}} {
		if _, _, _, ok := ParseLend(texts(bad...)); ok {
			t.Errorf("LEND %q is taken", bad)
		}
	}
	if _, _, _, ok := ParseCede(texts("x", "k", "v")); ok {
		t.Error("CEDE of no database is taken")
	}
}

// answering returns a peer to which a node sends a reply to each of its requests, in pieces of some bytes.
func answering(t *testing.T, piece int, replies ...[]byte) *Peer {
	t.Helper()
	near, far := net.Pipe()
	t.Cleanup(func() { near.Close(); far.Close() })
	go func() {
		buf := make([]byte, 1<<10)
		for _, reply := range replies {
			if _, err := far.Read(buf); err != nil {
				return
			}
			for len(reply) > 0 {
				n := min(piece, len(reply))
				if _, err := far.Write(reply[:n]); err != nil {
					return
				}
				reply = reply[n:]
			}
		}
		far.Close()
	}()
	return &Peer{Addr: "node", Conn: near, stop: func() bool { return true }}
}

func TestLend(t *testing.T) {
	long := bytes.Repeat([]byte("payload\r\n"), 40_000)
	lent := func(l Lent, payload []byte) []byte {
		dst := AppendLent(nil, &l)
		if l.Found {
			dst = resp.AppendBulk(dst, payload)
		}
		return dst
	}
	for _, piece := range []int{1, 7, 5000, 1 << 20} {
		p := answering(t, piece,
			lent(Lent{Found: true, Version: []byte("1.2.true"), TTL: 1500}, []byte("payload")),
			lent(Lent{TTL: -1}, nil),
			[]byte("-MOVED 1 h:1\r\n"),
			append(AppendLent(nil, &Lent{Found: true, TTL: -1}), "-ERR too large\r\n"...),
			lent(Lent{Found: true, TTL: -1}, long),
			lent(Lent{Found: true, TTL: -1}, nil),
			[]byte(":1\r\n"), []byte(":0\r\n"))
		var got bytes.Buffer
		ask := func() (Lent, error) {
			got.Reset()
			return p.Lend(0, []byte("k"), true, func(int) (io.Writer, error) { return &got, nil })
		}
		if l, err := ask(); err != nil || !l.Found || string(l.Version) != "1.2.true" || l.TTL != 1500 || got.String() != "payload" {
			t.Errorf("in pieces of %d: %+v %q, %v", piece, l, got.String(), err)
		}
		if l, err := ask(); err != nil || l.Found {
			t.Errorf("a key that is not there: %+v, %v", l, err)
		}
		for _, want := range []string{"MOVED 1 h:1", "ERR too large"} {
			var refused *Refusal
			if _, err := ask(); !errors.As(err, &refused) || refused.Text != want {
				t.Errorf("%s is read as %v", want, err)
			}
		}
		if l, err := ask(); err != nil || l.TTL != -1 || !bytes.Equal(got.Bytes(), long) {
			t.Errorf("in pieces of %d a long payload: %d bytes, %v", piece, got.Len(), err)
		}
		if l, err := ask(); err != nil || !l.Found || got.Len() != 0 {
			t.Errorf("an empty payload: %+v, %v", l, err)
		}
		for _, want := range []bool{true, false} {
			if ceded, err := p.Cede(0, []byte("k"), []byte("v")); err != nil || ceded != want {
				t.Errorf("CEDE: %v, %v, want %v", ceded, err, want)
			}
		}
	}
}

func TestLendMalformed(t *testing.T) {
	for _, reply := range []string{
		"+OK\r\n", "*3\r\n+x\r\n", "*3\r\n$-1\r\n", "*3\r\n$1\r\nvv\r\n", "*3\r\n$99999\r\n", "*3\r\n$0\r\n\r\n:x\r\n",
		"*3\r\n$0\r\n\r\n:-1\r\n$-1\r\n", "*3\r\n$0\r\n\r\n:-1\r\n$1\r\nxyz\r\n", "*3\r\n$0\r\n\r\n:-1\r\n$5\r\nx", strings.Repeat("*", 10_000),
	} {
		p := answering(t, 1<<20, []byte(reply))
		_, err := p.Lend(0, []byte("k"), false, func(n int) (io.Writer, error) {
			if n < 0 {
				t.Errorf("%.40q begins a payload of %d bytes", reply, n)
			}
			return io.Discard, nil
		})
		var refused *Refusal
		if err == nil || errors.As(err, &refused) {
			t.Errorf("%.40q is read as %v", reply, err)
		}
	}
	p := answering(t, 1<<20, []byte("*3\r\n$0\r\n\r\n:-1\r\n$5\r\nxxxxx\r\n"))
	full := errors.New("full")
	if _, err := p.Lend(0, []byte("k"), false, func(int) (io.Writer, error) { return nil, full }); !errors.Is(err, full) {
		t.Errorf("without room it returns %v", err)
	}
}
