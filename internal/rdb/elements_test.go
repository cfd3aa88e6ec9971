package rdb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// describe reads a payload and returns its elements in one line.
func describe(payload []byte) (string, error) {
	e, err := ReadElements(payload)
	if err != nil {
		return "", err
	}
	var all []string
	for x, ok := e.Next(); ok; x, ok = e.Next() {
		line := fmt.Sprintf("%.40q", x.First)
		switch e.Kind() {
		case KindHash:
			line += fmt.Sprintf("=%.40q", x.Second)
			if x.ExpireAt != 0 {
				line += fmt.Sprintf("@%d", x.ExpireAt)
			}
		case KindSortedSet:
			line += fmt.Sprintf("=%v", x.Score)
		}
		all = append(all, line)
	}
	if e.Kind() == KindSet {
		slices.Sort(all)
	}
	return strings.Join(all, " "), e.Err()
}

// withVersion completes a payload with the footer of a version.
func withVersion(head string, version uint16) []byte {
	return appendFoot([]byte(head), Sum(0, []byte(head)), version)
}

// bulk is a string of a payload.
func bulk(s string) string { return string(appendString(nil, []byte(s))) }

// text is bulk of what must not become an integer.
func text(s string) string { return string(appendLength(nil, uint64(len(s)))) + s }

// compressed is a string that LZF compresses: one byte, repeated.
func compressed(c byte, n int) string {
	lzf := []byte{0, c}
	for left := n - 1; left > 0; {
		m := min(left, maxCopy)
		if left-m == 1 || left-m == 2 {
			m -= 2
		}
		if m < 9 {
			lzf = append(lzf, byte(m-2)<<5, 0)
		} else {
			lzf = append(lzf, 7<<5, byte(m-9), 0)
		}
		left -= m
	}
	return "\xc3" + string(appendLength(nil, uint64(len(lzf)))) + string(appendLength(nil, uint64(n))) + string(lzf)
}

// listpack makes a listpack of encoded entries.
func listpack(entries ...string) string {
	b := make([]byte, listpackHead)
	for _, e := range entries {
		b = append(b, e...)
		var back []byte
		for n := len(e); n > 0 || len(back) == 0; n >>= 7 {
			back = append([]byte{byte(n&0x7f) | 0x80}, back...)
		}
		back[0] &= 0x7f
		b = append(b, back...)
	}
	b = append(b, packEnd)
	binary.LittleEndian.PutUint32(b, uint32(len(b)))
	binary.LittleEndian.PutUint16(b[4:], uint16(min(len(entries), countUnknown)))
	return string(b)
}

// ziplist makes a ziplist of encoded entries.
func ziplist(entries ...string) string {
	b := make([]byte, ziplistHead)
	before, tail := 0, ziplistHead
	for _, e := range entries {
		tail = len(b)
		if before < farBack {
			b = append(b, byte(before))
		} else {
			b = binary.LittleEndian.AppendUint32(append(b, farBack), uint32(before))
		}
		b = append(b, e...)
		before = len(b) - tail
	}
	b = append(b, packEnd)
	binary.LittleEndian.PutUint32(b, uint32(len(b)))
	binary.LittleEndian.PutUint32(b[4:], uint32(tail))
	binary.LittleEndian.PutUint16(b[8:], uint16(len(entries)))
	return string(b)
}

func intset(width int, all ...int64) string {
	b := binary.LittleEndian.AppendUint32(nil, uint32(width))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(all)))
	for _, n := range all {
		for i := range width {
			b = append(b, byte(n>>(8*i)))
		}
	}
	return string(b)
}

func little(n uint64) string { return string(binary.LittleEndian.AppendUint64(nil, n)) }

// encoded are payloads of all types, as their formats define them. knows says that redis-server 7.0
// reads the payload.
var encoded = []struct {
	head    string
	version uint16
	want    string
	knows   bool
}{
	{"\x01\x03" + bulk("a") + bulk("12") + bulk("-70000"), 6, `"a" "12" "-70000"`, true},
	{"\x02\x02" + bulk("b") + bulk("a"), 6, `"a" "b"`, true},
	{"\x03\x04" + bulk("a") + "\x031.5" + bulk("b") + "\xfe" + bulk("c") + "\xff" + bulk("d") + "\x04-1e3", 6, `"a"=1.5 "b"=+Inf "c"=-Inf "d"=-1000`, true},
	{"\x04\x02" + bulk("a") + bulk("1") + bulk("b") + compressed('x', 600), 6, `"a"="1" "b"="` + strings.Repeat("x", 40) + `"`, true},
	{"\x05\x02" + bulk("a") + little(math.Float64bits(0.1)) + bulk("b") + little(math.Float64bits(2)), 8, `"a"=0.1 "b"=2`, true},
	{"\x09" + text("\x02\x01a\x01\x02b\x00\x00\xfe\x2c\x01\x00\x00"+strings.Repeat("y", 300)+"\x00\x00\xff"), 3, `"a"="b" "` + strings.Repeat("y", 40) + `"=""`, true},
	{"\x0a" + text(ziplist("\x01a", "\xf1", "\xfd", "\xfe\x80", "\xc0\xff\x7f", "\xf0\x00\x00\x80", "\xd0\x01\x00\x00\x80",
		"\xe0\x00\x00\x00\x00\x00\x00\x00\x80", "\x41\x2c"+strings.Repeat("y", 300), "\x80\x00\x00\x00\x02zz")), 6,
		`"a" "0" "12" "-128" "32767" "-8388608" "-2147483647" "-9223372036854775808" "` + strings.Repeat("y", 40) + `" "zz"`, true},
	{"\x0b" + text(intset(2, -5, 0, 32767)), 6, `"-5" "0" "32767"`, true},
	{"\x0b" + text(intset(4, -70000, 70000)), 6, `"-70000" "70000"`, true},
	{"\x0b" + text(intset(8, math.MinInt64, math.MaxInt64)), 6, `"-9223372036854775808" "9223372036854775807"`, true},
	{"\x0c" + text(ziplist("\x01a", "\xf2", "\x01b", "\x032.5")), 6, `"a"=1 "b"=2.5`, true},
	{"\x0d" + text(ziplist("\x01a", "\xf2", "\x01b", "\x00")), 6, `"a"="1" "b"=""`, true},
	{"\x0e\x03" + text(ziplist("\x01a")) + text(ziplist()) + text(ziplist("\x01b", "\xf6")), 8, `"a" "b" "5"`, true},
	{"\x10" + text(listpack("\x81a", "\x05", "\x81b", "\x80")), 10, `"a"="5" "b"=""`, true},
	{"\x11" + text(listpack("\x81a", "\x05", "\x81b", "\x8407.5")), 10, `"a"=5 "b"=7.5`, true},
	{"\x12\x03\x02" + text(listpack("\x7f", "\xdf\xff", "\xe1\x2c"+strings.Repeat("y", 300), "\xf0\x01\x00\x00\x00z")) +
		"\x01" + text("plain") + "\x02" + text(listpack("\xf1\x00\x80", "\xf2\x00\x00\x80", "\xf3\x00\x00\x00\x80", "\xf4\x00\x00\x00\x00\x00\x00\x00\x80")), 10,
		`"127" "-1" "` + strings.Repeat("y", 40) + `" "z" "plain" "-32768" "-8388608" "-2147483648" "-9223372036854775808"`, true},
	{"\x14" + text(listpack("\x81b", "\x05", "\x81a")), 11, `"5" "a" "b"`, false},
	{"\x16\x02" + bulk("a") + bulk("1") + little(1700000000000) + bulk("b") + bulk("2") + little(math.MaxUint64), 80, `"a"="1"@1700000000000 "b"="2"`, false},
	{"\x18" + little(1700000000000) + "\x03" + "\x00" + bulk("a") + bulk("1") + "\x01" + bulk("b") + bulk("2") + "\x41\x00" + bulk("c") + bulk("3"), 12,
		`"a"="1" "b"="2"@1700000000000 "c"="3"@1700000000255`, false},
	{"\x19" + little(1700000000000) + text(listpack("\x81b", "\x02", "\xf4"+little(1700000000000), "\x81a", "\x01", "\x00")), 12, `"b"="2"@1700000000000 "a"="1"`, false},
}

func TestElements(t *testing.T) {
	for _, x := range encoded {
		payload := withVersion(x.head, x.version)
		if err := Check(payload); err != nil {
			t.Fatal(err)
		}
		if got, err := describe(payload); err != nil || got != x.want {
			t.Errorf("type %d: %v, got  %s\nwant %s", x.head[0], err, got, x.want)
		}
	}
}

// TestElementsCompressed reads packs that are compressed.
func TestElementsCompressed(t *testing.T) {
	pack := listpack("\xe1\x2c" + strings.Repeat("y", 300))
	lzf := ""
	for rest := pack; rest != ""; {
		n := min(len(rest), maxLiteral)
		lzf += string([]byte{byte(n - 1)}) + rest[:n]
		rest = rest[n:]
	}
	s := "\xc3" + string(appendLength(nil, uint64(len(lzf)))) + string(appendLength(nil, uint64(len(pack)))) + lzf
	got, err := describe(withVersion("\x12\x02\x02"+s+"\x01"+compressed('z', 70_000), 10))
	if want := fmt.Sprintf("%q %q", strings.Repeat("y", 40), strings.Repeat("z", 40)); err != nil || got != want {
		t.Errorf("%v, %s", err, got)
	}
}

func TestElementsRefuses(t *testing.T) {
	f := func(head string) {
		t.Helper()
		got, err := describe(withVersion(head, 10))
		if !errors.Is(err, ErrFormat) {
			t.Errorf("%q: %s, %v", head, got, err)
		}
	}
	f("")
	f("\x00\x01a") // a string
	f("\x01")
	f("\x01\x00")                                      // no elements
	f("\x01\x02\x01a")                                 // one of two
	f("\x01\x81\xff\xff\xff\xff\xff\xff\xff\xff\x01a") // far more than there are
	f("\x03\x01\x01a\xfd")                             // not a number
	f("\x03\x01\x01a\x03nan")
	f("\x03\x01\x01a\x031_0")
	f("\x03\x01\x01a\x05hello")
	f("\x05\x01\x01a" + little(math.Float64bits(math.NaN())))
	f("\x05\x01\x01a\x00\x00")
	f("\x04\x01\x01a") // no value
	f("\x09" + text("\x01\x01a\x01\x05b\xff"))
	f("\x09" + text("\x02\x01a\x01\x00b\xff"))
	f("\x09" + text("\x01\xfe\x01\x00\x00\x00a\x01\x00b\xff"))
	f("\x09" + text("\x00\xff"))
	f("\x09" + text("\x01\x01a\xff"))
	f("\x0b" + text(intset(2)))
	f("\x0b" + text(intset(2, 2, 1)))
	f("\x0b" + text(intset(2, 1, 1)))
	f("\x0b" + text(intset(3, 1)))
	f("\x0b" + text(intset(2, 1)+"x"))
	f("\x0b" + text("\x02\x00\x00\x00\xff\xff\xff\xff"))
	f("\x0d" + text(ziplist("\x01a")))          // a field without a value
	f("\x0c" + text(ziplist("\x01a", "\x01b"))) // a score that is none
	f("\x0c" + text(ziplist("\x01a", "\x03nan")))
	f("\x0a" + text(ziplist("\x05a"))) // a string beyond the end
	f("\x0a" + text(ziplist("\xc1a"))) // no such encoding
	f("\x0a" + text(ziplist("\xff")))
	f("\x0a" + text(strings.Replace(ziplist("\x01a"), "\x01\x00\x00", "\x02\x00\x00", 1)))
	f("\x0e\x11" + strings.Repeat(text(ziplist()), 17) + text(ziplist("\x01a")))
	f("\x12\x01\x03" + text("a")) // no such container
	f("\x12\x01\x01")
	f("\x10" + text(listpack("\x81a", "\x01", "\x81b")))
	f("\x10" + text(listpack("\xf5a", "\x01")))
	f("\x10" + text(listpack()))
	f("\x10" + text("\x08\x00\x00\x00\x01\x00\x01\xff"))             // no length behind the entry
	f("\x10" + text("\x0b\x00\x00\x00\x02\x00\x01\x02\x01\x01\xff")) // a wrong one
	f("\x19" + little(5) + text(listpack("\x81a", "\x01", "\x81x")))
	f("\x18" + little(math.MaxInt64) + "\x01\x05" + bulk("a") + bulk("1"))
	f("\x18\x01\x02")
	for _, code := range []string{"\x06", "\x07", "\x08", "\x0f", "\x13", "\x15", "\x16", "\x17", "\x1a", "\x1e", "\x21", "\xff"} {
		f(code + "\x01\x01a")
	}
}

// TestDialects has types of which Redis and Valkey mean two things.
func TestDialects(t *testing.T) {
	for _, x := range []struct {
		code    string
		version uint16
		want    string
	}{
		{"\x16", 12, "payloads of type 22 (hash of a Redis 7.4 release candidate, version 12) are not supported"},
		{"\x18", 80, "bad data format"},
		{"\x1a", 13, "payloads of type 26 (stream, version 13) are not supported"},
		{"\x1a", 80, "bad data format"},
		{"\x1c", 14, "payloads of type 28 (array, version 14) are not supported"},
	} {
		_, err := KindOf(withVersion(x.code, x.version))
		if err == nil || err.Error() != x.want {
			t.Errorf("type %d: %v", x.code[0], err)
		}
	}
	for version, want := range map[uint16]error{14: nil, 15: ErrChecksum, 79: ErrChecksum, 80: nil, 81: nil, 82: ErrChecksum} {
		if err := Check(withVersion("\x00\x01a", version)); !errors.Is(err, want) {
			t.Errorf("version %d: %v", version, err)
		}
	}
}

// TestElementsBound has compressed strings that are longer than there is memory.
func TestElementsBound(t *testing.T) {
	payload := withVersion("\x01\x02"+compressed('a', 100_000)+compressed('b', 120_000), 10)
	for _, limit := range []int{0, 1 << 17, 1 << 20} {
		e, err := ReadElements(payload)
		if err != nil {
			t.Fatal(err)
		}
		left, n := limit, 0
		e.Room = func(bytes int) bool { left -= bytes; return left >= 0 }
		for _, ok := e.Next(); ok; _, ok = e.Next() {
			n++
		}
		if limit == 0 && (n != 0 || !errors.Is(e.Err(), ErrTooLong)) || limit > 0 && (n != 2 || e.Err() != nil || e.Taken != 1<<17) {
			t.Errorf("%d bytes: %d elements, %v, %d taken", limit, n, e.Err(), e.Taken)
		}
	}
	e, _ := ReadElements(withVersion("\x01\x01"+compressed('a', maxUnpacked+1), 10))
	if _, ok := e.Next(); ok || !errors.Is(e.Err(), ErrTooLong) {
		t.Errorf("%v", e.Err())
	}
}

// TestElementsAllocateLittle reads payloads of a few bytes that declare terabytes.
func TestElementsAllocateLittle(t *testing.T) {
	huge := "\x81\x00\x00\x01\x00\x00\x00\x00\x00"
	var payloads [][]byte
	for _, head := range []string{
		"\x01" + huge + huge + "a", "\x01\x01\xc3\x04" + huge + "\x00a\x20\x00", "\x12" + huge + "\x02" + huge, "\x0b" + huge,
	} {
		payloads = append(payloads, withVersion(head, 10))
	}
	if n := testing.AllocsPerRun(100, func() {
		for _, p := range payloads {
			if e, err := ReadElements(p); err == nil {
				e.Next()
			}
		}
	}); n > float64(len(payloads)) {
		t.Errorf("%v allocations", n)
	}
}

func TestWriter(t *testing.T) {
	list := []Element{{First: []byte("a")}, {First: []byte("12")}, {First: []byte(strings.Repeat("x", 100))}}
	hash := []Element{{First: []byte("a"), Second: []byte("1"), ExpireAt: 1700000000255}, {First: []byte("b"), Second: nil},
		{First: []byte("c"), Second: []byte("3"), ExpireAt: 1700000000000}}
	zset := []Element{{First: []byte("a"), Score: 0.1}, {First: []byte("b"), Score: math.Inf(1)}}
	for _, x := range []struct {
		form    Form
		all     []Element
		version uint16
		want    string
	}{
		{FormList, list, 10, `"a" "12" "` + strings.Repeat("x", 40) + `"`},
		{FormSet, list, 10, `"12" "a" "` + strings.Repeat("x", 40) + `"`},
		{FormSortedSet, zset, 10, `"a"=0.1 "b"=+Inf`},
		{FormHash, hash, 10, `"a"="1" "b"="" "c"="3"`},
		{FormHashRedis, hash, 12, `"a"="1"@1700000000255 "b"="" "c"="3"@1700000000000`},
		{FormHashValkey, hash, 80, `"a"="1"@1700000000255 "b"="" "c"="3"@1700000000000`},
	} {
		payload := write(x.form, x.all)
		if err := Check(payload); err != nil {
			t.Fatal(err)
		}
		if v := binary.LittleEndian.Uint16(payload[len(payload)-FootSize:]); v != x.version {
			t.Errorf("type %d has version %d", x.form, v)
		}
		if got, err := describe(payload); err != nil || got != x.want {
			t.Errorf("type %d: %v, got  %s\nwant %s", x.form, err, got, x.want)
		}
	}
}

// write makes the payload of a collection.
func write(form Form, all []Element) []byte {
	w := Writer{Form: form, Soonest: 1700000000000}
	out := w.AppendHead(nil, len(all))
	for _, x := range all {
		out = w.AppendElement(out, x)
	}
	return w.AppendFoot(out)
}

func FuzzElements(f *testing.F) {
	for _, x := range encoded {
		f.Add([]byte(x.head), x.version)
	}
	f.Fuzz(func(t *testing.T, head []byte, version uint16) {
		payload := withVersion(string(head), version)
		if Check(payload) != nil {
			return
		}
		e, err := ReadElements(payload)
		if err != nil {
			return
		}
		form := map[Kind]Form{KindList: FormList, KindSet: FormSet, KindSortedSet: FormSortedSet, KindHash: FormHashValkey}[e.Kind()]
		var all []Element
		for x, ok := e.Next(); ok; x, ok = e.Next() {
			x.First, x.Second = slices.Clone(x.First), slices.Clone(x.Second)
			all = append(all, x)
		}
		// A pair of a zipmap takes three bytes at least, and LZF makes 264 bytes of three at best.
		if e.Err() != nil {
			return
		}
		if len(all) == 0 || len(all) > 264*len(head) {
			t.Fatalf("%d elements of %d bytes", len(all), len(head))
		}
		again := write(form, all)
		got, err := describe(again)
		want, _ := describe(payload)
		if err != nil || got != want {
			t.Fatalf("%v, read %s, and written %s", err, want, got)
		}
	})
}
