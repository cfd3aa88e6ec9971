package rdb

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/redistest"
)

// golden is a line of testdata/payloads.txt: rdbcompression (no or yes), a value, and the payload
// that redis-server 7.0.15 makes of it, in hex.
type golden struct {
	compression string
	value       []byte
	payload     []byte
}

func goldens(t *testing.T) (all []golden) {
	t.Helper()
	text, err := os.ReadFile("testdata/payloads.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			t.Fatalf("%q: not three fields", line)
		}
		value, err1 := strconv.Unquote(fields[1])
		payload, err2 := hex.DecodeString(fields[2])
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		all = append(all, golden{fields[0], []byte(value), payload})
	}
	return all
}

func TestGoldens(t *testing.T) {
	for _, g := range goldens(t) {
		if got := AppendDump(nil, g.value); g.compression == "no" && !bytes.Equal(got, g.payload) {
			t.Errorf("%q: payload %x, want %x", g.value, got, g.payload)
		}
		wantString(t, g.payload, g.value)
	}
}

// wantString reads a payload by WriteTo and by Append.
func wantString(t *testing.T, payload, want []byte) {
	t.Helper()
	if err := Check(payload); err != nil {
		t.Fatalf("%x: %v", payload, err)
	}
	s, err := Read(payload)
	if err != nil {
		t.Fatalf("%x: %v", payload, err)
	}
	var to buffer
	err = s.WriteTo(&to)
	if err != nil || s.Len() != len(want) || !bytes.Equal(to.all, want) ||
		string(s.Append([]byte("a"))) != "a"+string(want) {
		t.Errorf("%x: %d bytes, %v, %q and %q, want %q", payload, s.Len(), err, to.all, s.Append(nil), want)
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
		fmt.Fprintf(conn, "CONFIG SET rdbcompression %s\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$%d\r\n%s\r\nDUMP k\r\n",
			g.compression, len(g.value), g.value)
		want := fmt.Sprintf("+OK\r\n+OK\r\n$%d\r\n%s\r\n", len(g.payload), g.payload)
		got := make([]byte, len(want))
		if _, err := io.ReadFull(conn, got); err != nil || string(got) != want {
			t.Fatalf("%q: %v, Redis says\n%q, the file\n%q", g.value, err, got, want)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{0, 1, 5, 11, 12, 63, 64, 16383, 16384, 100_000} {
		value := make([]byte, n)
		for i := range value {
			value[i] = byte(random.Uint32())
		}
		wantString(t, AppendDump([]byte("before"), value)[len("before"):], value)
	}
	for _, n := range []int64{0, 1, -1, 127, 128, -128, -129, 32767, 32768, -32768, -32769, 1<<31 - 1,
		1 << 31, -1 << 31, -1<<31 - 1, 1<<63 - 1} {
		value := strconv.AppendInt(nil, n, 10)
		wantString(t, AppendDump(nil, value), value)
	}
	for _, value := range []string{"-0", "007", "+5", " 5", "5 ", "1_000", "0x10", "-", "12345678901"} {
		wantString(t, AppendDump(nil, []byte(value)), []byte(value))
	}
}

// withFoot completes a payload.
func withFoot(head string) []byte { return AppendFoot([]byte(head), Sum(0, []byte(head))) }

func TestCheck(t *testing.T) {
	good := AppendDump(nil, []byte("hello"))
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 0x10
		if err := Check(bad); !errors.Is(err, ErrChecksum) {
			t.Errorf("byte %d changed: %v", i, err)
		}
		if err := Check(good[:i]); !errors.Is(err, ErrChecksum) {
			t.Errorf("%d bytes of it: %v", i, err)
		}
	}
	newer := append(good[:len(good)-FootSize:len(good)-FootSize], lastRedis+1, 0)
	for i, sum := 0, Sum(0, newer); i < 8; i++ {
		newer = append(newer, byte(sum>>(8*i)))
	}
	if err := Check(newer); !errors.Is(err, ErrChecksum) {
		t.Errorf("a version from the future: %v", err)
	}
}

func TestReadRefuses(t *testing.T) {
	f := func(head string) {
		t.Helper()
		payload := withFoot(head)
		if err := Check(payload); err != nil {
			t.Fatal(err)
		}
		if s, err := Read(payload); !errors.Is(err, ErrFormat) {
			t.Errorf("%q: %d bytes, %v", head, s.Len(), err)
		}
	}
	f("")
	f("\x00")
	f("\x01\x01a")                                 // a list
	f("\x00\x05hell")                              // cut off, or so it would be without the footer
	f("\x00\x40")                                  // half a length
	f("\x00\x80\x00\x00\x01")                      // three quarters
	f("\x00\x80\xff\xff\xff\xffx")                 // far more than there is
	f("\x00\x81\xff\xff\xff\xff\xff\xff\xff\xffx") // beyond any
	f("\x00\x81\x7f\xff\xff\xff\xff\xff\xff\xffx")
	f("\x00\x82x")    // no such length
	f("\x00\xc0")     // no integer
	f("\x00\xc1\x00") // half an integer
	f("\x00\xc2\x00\x00\x00")
	f("\x00\xc4\x00") // no such encoding
	f("\x00\xc3")     // LZF without lengths
	f("\x00\xc3\x01")
	f("\x00\xc3\x02\x01\x00")          // cut off
	f("\x00\xc3\x02\x02\x00a")         // one byte, not two
	f("\x00\xc3\x02\x00\x00a")         // one byte, not none
	f("\x00\xc3\x02\x05\x01a")         // a literal that is cut off
	f("\x00\xc3\x04\x05\x00a\x20\x01") // a copy from before the beginning
	f("\x00\xc3\x03\x05\x00a\x20")     // half a copy
	f("\x00\xc3\x03\x05\x00a\xe0")     // a third of one
}

func TestDecompress(t *testing.T) {
	f := func(compressed, want string) {
		t.Helper()
		wantString(t, withFoot("\x00\xc3"+string([]byte{byte(len(compressed)), len14 | byte(len(want)>>8), byte(len(want))})+compressed), []byte(want))
	}
	f("\x00a\x20\x00", "aaaa")
	f("\x01ab\x40\x01\x00c", "abababc")
	f("\x00a\xe0\xff\x00", strings.Repeat("a", 1+maxCopy))
	f("\x02abc\xe0\x00\x01\x00d", "abc"+"bcbcbcbcb"+"d")
}

// TestReadAllocatesNothing reads payloads of a few bytes that declare a length of a terabyte.
func TestReadAllocatesNothing(t *testing.T) {
	payload := withFoot("\x00\x81\x00\x00\x01\x00\x00\x00\x00\x00abc")
	compressed := withFoot("\x00\xc3\x04\x81\x00\x00\x01\x00\x00\x00\x00\x00\x00a\x20\x00")
	if n := testing.AllocsPerRun(100, func() {
		_, _ = Read(payload)
		_, _ = Read(compressed)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("\x00\xc3\x04\x04\x00a\x20\x00"))
	f.Add([]byte("\x00\xc2\x00\x00\x00\x01"))
	f.Add([]byte("\x00\x40\x05hello"))
	f.Fuzz(func(t *testing.T, head []byte) {
		s, err := Read(withFoot(string(head)))
		if err != nil {
			return
		}
		// LZF makes 264 bytes of three at best.
		if s.Len() > 88*len(head) {
			t.Fatalf("%d bytes of %d", s.Len(), len(head))
		}
		value := s.Append(nil)
		if len(value) != s.Len() {
			t.Fatalf("%d bytes, announced %d", len(value), s.Len())
		}
		wantString(t, AppendDump(nil, value), value)
	})
}
