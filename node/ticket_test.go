package node

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// ticketFor sends a command that must be answered by a ticket.
func (c *client) ticketFor(line string) (number uint64, size int) {
	c.t.Helper()
	c.send(line)
	reply := c.read()
	if _, err := fmt.Sscanf(string(reply), "-DUNLINLARGE %d %d\r\n", &number, &size); err != nil {
		c.t.Fatalf("%s answers %.100q: %v", line, reply, err)
	}
	return number, size
}

// fetch returns a piece of a ticket's reply.
func (c *client) fetch(number uint64, from, count int) []byte {
	c.t.Helper()
	c.send(fmt.Sprintf("DUNLIN FETCH %d %d %d", number, from, count))
	reply := c.read()
	piece, ok := resp.DecodeBulk(reply)
	if !ok {
		c.t.Fatalf("FETCH %d %d %d answers %.100q", number, from, count, reply)
	}
	return piece
}

// A large reply on a common pipe is kept as it was, and had in pieces over another pipe.
func TestTickets(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Memory = 256 << 20 })
	common, fetch := openPipeTo(t, n, 7, 0, "common", 1, 2), openPipeTo(t, n, 7, 1, "fetch", 1, 2)
	a, b := bigValue(3<<20, 1), bigValue(300<<10, 5)
	common.wantBig("SET {k}a BIG", a, "OK")
	common.wantBig("SET {k}b BIG", b, "OK")
	common.want("SET {k}s small", "OK")
	array := append([]byte("*4\r\n"), resp.AppendBulk(nil, a)...)
	array = resp.AppendBulk(append(resp.AppendBulkString(array, "small"), "$-1\r\n"...), b)
	rng := rand.New(rand.NewPCG(1, 2))
	for line, want := range map[string][]byte{
		"GET {k}a":                       resp.AppendBulk(nil, a),
		"GETRANGE {k}a 1000 -2":          resp.AppendBulk(nil, a[1000:len(a)-1]),
		"GETEX {k}b PERSIST":             resp.AppendBulk(nil, b),
		"MGET {k}a {k}s {k}missing {k}b": array,
	} {
		number, size := common.ticketFor(line)
		if size != len(want) {
			t.Fatalf("%s: %d bytes, want %d", line, size, len(want))
		}
		if n.lists.Load() < 256 {
			t.Errorf("%s: the ticket takes %d bytes of the limit", line, n.lists.Load())
		}
		var got []byte
		for len(got) < size {
			got = append(got, fetch.fetch(number, len(got), rng.IntN(member.MaxPiece)+1)...)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s: other bytes", line)
		}
		for range 100 { // from anywhere
			from, count := rng.IntN(size+1), rng.IntN(10_000)+1
			if got := fetch.fetch(number, from, count); !bytes.Equal(got, want[from:min(from+count, size)]) {
				t.Fatalf("%s: other bytes at %d", line, from)
			}
		}
		common.want(fmt.Sprintf("DUNLIN FETCH %d 0 0", number), `""`)
		fetch.want(fmt.Sprintf("DUNLIN FETCH %d 0 10", number), "(error) "+errNoTicket)
	}
	if pinnedBytes(n) != 0 || n.lists.Load() != 0 {
		t.Errorf("%d bytes are pinned in the end, %d charged", pinnedBytes(n), n.lists.Load())
	}
}

// The reply is that of the command's turn, whatever follows, and ends with its pipe.
func TestTicketKeepsTheReply(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Memory = 256 << 20 })
	common, fetch := openPipeTo(t, n, 7, 0, "common", 1, 2), openPipeTo(t, n, 7, 0, "fetch", 1, 2)
	v := bigValue(1<<20, 1)
	for _, fate := range []string{"SET k other", "DEL k", "SETRANGE k 0 xxxxxx", "FLUSHALL"} {
		common.wantBig("SET k BIG", v, "OK")
		number, size := common.ticketFor("GETDEL k")
		common.wantBig("SET k BIG", v, "OK")
		number2, _ := common.ticketFor("GET k")
		common.do(fate)
		for _, number := range []uint64{number, number2} {
			if got := append(fetch.fetch(number, 0, member.MaxPiece), fetch.fetch(number, member.MaxPiece, member.MaxPiece)...); !bytes.Equal(got, resp.AppendBulk(nil, v)) || len(got) != size {
				t.Errorf("%s has changed the reply", fate)
			}
		}
	}
	common.conn.Close()
	eventually(t, "the tickets end with their pipe", func() bool { return pinnedBytes(n) == 0 && n.lists.Load() == 0 })
	fetch.want("DUNLIN FETCH 1 0 10", "(error) "+errNoTicket)
}

// Who gets no ticket: clients, other pipes, replies that are not large. Who gets no piece of one:
// others.
func TestNoTickets(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Memory = 256 << 20 })
	common := openPipeTo(t, n, 7, 0, "common", 1, 2)
	v, w := bigValue(1<<20, 1), bigValue(100<<10, 3)
	common.wantBig("SET big BIG", v, "OK")
	common.wantBig("SET less BIG", w, "OK")
	common.wantBig("GET less", w, "BIG")
	for _, c := range []*client{dial(t, n.Addr()), openPipeTo(t, n, 7, 0, "large", 1, 2)} {
		c.wantBig("GET big", v, "BIG")
	}
	number, _ := common.ticketFor("GET big")
	stranger := openPipeTo(t, n, 8, 0, "fetch", 1, 2)
	stranger.want(fmt.Sprintf("DUNLIN FETCH %d 0 10", number), "(error) "+errNoTicket)
	stranger.want(fmt.Sprintf("DUNLIN FETCH %d 0 0", number), `""`)
	if pinnedBytes(n) == 0 {
		t.Error("another proxy has ended the ticket")
	}
	for _, bad := range []string{"x 0 1", "1 x 1", "1 0 x", "1 -1 1", "1 0 -1", fmt.Sprint("1 0 ", member.MaxPiece+1), "-1 0 1"} {
		stranger.want("DUNLIN FETCH "+bad, "(error) "+errBadFetch)
	}
	stranger.want(fmt.Sprintf("DUNLIN FETCH %d %d 1", number, 2<<20), "(error) "+errNoTicket)
	dial(t, n.Addr()).want(fmt.Sprintf("DUNLIN FETCH %d 0 1", number), "(error) "+errBadFetch)
}
