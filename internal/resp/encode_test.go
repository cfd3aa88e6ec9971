package resp

import (
	"math"
	"strings"
	"testing"
)

func TestEncoders(t *testing.T) {
	gives := func(got []byte, want string) {
		t.Helper()
		if string(got) != "before"+want {
			t.Errorf("got %q, want it after \"before\": %q", got, want)
		}
	}
	before := func() []byte { return []byte("before") }

	gives(AppendSimple(before(), "OK"), "+OK\r\n")
	gives(AppendSimple(before(), "a\r\n+b\n"), "+a  +b \r\n")
	gives(AppendError(before(), "ERR it's 'a\r\nb'"), "-ERR it's 'a  b'\r\n")
	gives(AppendErrorBytes(before(), []byte("ERR\n")), "-ERR \r\n")
	gives(AppendInt(before(), 0), ":0\r\n")
	gives(AppendInt(before(), 10), ":10\r\n")
	gives(AppendInt(before(), -1), ":-1\r\n")
	gives(AppendInt(before(), math.MinInt64), ":-9223372036854775808\r\n")
	gives(AppendBulk(before(), nil), "$0\r\n\r\n")
	gives(AppendBulk(before(), []byte("a\r\nb")), "$4\r\na\r\nb\r\n")
	gives(AppendBulkString(before(), strings.Repeat("x", 64)), "$64\r\n"+strings.Repeat("x", 64)+"\r\n")
	gives(AppendBulkString(before(), strings.Repeat("x", 100)), "$100\r\n"+strings.Repeat("x", 100)+"\r\n")
	gives(AppendNull(before(), RESP2), "$-1\r\n")
	gives(AppendNull(before(), RESP3), "_\r\n")
	gives(AppendNull(before(), 0), "$-1\r\n")
	gives(AppendNullArray(before(), RESP2), "*-1\r\n")
	gives(AppendNullArray(before(), RESP3), "_\r\n")
	gives(AppendArray(before(), 12), "*12\r\n")
	gives(AppendMap(before(), RESP2, 7), "*14\r\n")
	gives(AppendMap(before(), RESP3, 7), "%7\r\n")
	gives(AppendSet(before(), RESP2, 2), "*2\r\n")
	gives(AppendSet(before(), RESP3, 2), "~2\r\n")
	gives(AppendVerbatim(before(), RESP2, "txt", "hi"), "$2\r\nhi\r\n")
	gives(AppendVerbatim(before(), RESP3, "txt", "hi"), "=6\r\ntxt:hi\r\n")
	gives(AppendRequest(before(), []byte("GET"), []byte("")), "*2\r\n$3\r\nGET\r\n$0\r\n\r\n")
}

func TestAppendDouble(t *testing.T) {
	gives := func(f float64, want string) {
		t.Helper()
		if got := string(AppendDouble(nil, RESP3, f)); got != ","+want+"\r\n" {
			t.Errorf("RESP3 %v: got %q, want %q", f, got, want)
		}
		if got := AppendDouble(nil, RESP2, f); string(got) != string(AppendBulkString(nil, want)) {
			t.Errorf("RESP2 %v: got %q, want %q", f, got, want)
		}
	}
	gives(0, "0")
	gives(3, "3")
	gives(-3.25, "-3.25")
	gives(0.1, "0.1")
	gives(1e6, "1000000")
	gives(1e300, "1e+300")
	gives(-1.5e-9, "-1.5e-9")
	gives(math.Inf(1), "inf")
	gives(math.Inf(-1), "-inf")
	gives(math.NaN(), "nan")
	gives(math.Copysign(0, -1), "-0")
	gives(math.SmallestNonzeroFloat64, "5e-324")
	gives(-math.MaxFloat64, "-1.7976931348623157e+308")
}

func TestParseInt(t *testing.T) {
	is := func(in string, want int64) {
		t.Helper()
		if got, ok := ParseInt([]byte(in)); !ok || got != want {
			t.Errorf("%q: got %d, %v", in, got, ok)
		}
	}
	isNot := func(in string) {
		t.Helper()
		if got, ok := ParseInt([]byte(in)); ok {
			t.Errorf("%q: got %d, want it refused", in, got)
		}
	}
	is("0", 0)
	is("-1", -1)
	is("1234567890123456789", 1234567890123456789)
	is("9223372036854775807", math.MaxInt64)
	is("-9223372036854775808", math.MinInt64)
	isNot("")
	isNot("-")
	isNot("-0")
	isNot("00")
	isNot("01")
	isNot("+1")
	isNot(" 1")
	isNot("1 ")
	isNot("1a")
	isNot("--1")
	isNot("9223372036854775808")
	isNot("-9223372036854775809")
	isNot("9999999999999999999")
	isNot("18446744073709551617")
	isNot("99999999999999999999")
}

func TestDecoders(t *testing.T) {
	bulk := func(reply, want string, wantOK bool) {
		t.Helper()
		if got, ok := DecodeBulk([]byte(reply)); ok != wantOK || string(got) != want {
			t.Errorf("DecodeBulk(%q): got %q, %v", reply, got, ok)
		}
	}
	bulk("$3\r\na\r\n\r\n", "a\r\n", true)
	bulk("$0\r\n\r\n", "", true)
	bulk("+OK\r\n", "OK", true)
	bulk("+\r\n", "", true)
	bulk("=8\r\ntxt:text\r\n", "text", true)
	bulk("=3\r\ntxt\r\n", "", false)
	bulk("$-1\r\n", "", false)
	bulk("$5\r\nabc\r\n", "", false)
	bulk("_\r\n", "", false)
	bulk(":1\r\n", "", false)
	bulk("-ERR\r\n", "", false)
	bulk("", "", false)

	array := func(reply string, wantN, wantLen int, wantOK bool) {
		t.Helper()
		if n, length, ok := DecodeArray([]byte(reply)); n != wantN || length != wantLen || ok != wantOK {
			t.Errorf("DecodeArray(%q): got %d, %d, %v", reply, n, length, ok)
		}
	}
	array("*2\r\n:1\r\n:2\r\n", 2, 4, true)
	array("*0\r\n", 0, 4, true)
	array("~12\r\n", 12, 5, true)
	array(">3\r\n", 3, 4, true)
	array("*1073741824\r\n", 1<<30, 13, true)
	array("*-1\r\n", -1, 5, true)
	array("*-2\r\n", 0, 0, false)
	array("%1\r\n", 0, 0, false)
	array("$1\r\na\r\n", 0, 0, false)
	array("*", 0, 0, false)

	integer := func(reply string, want int64, wantOK bool) {
		t.Helper()
		if got, ok := DecodeInt([]byte(reply)); got != want || ok != wantOK {
			t.Errorf("DecodeInt(%q): got %d, %v", reply, got, ok)
		}
	}
	integer(":42\r\n", 42, true)
	integer(":-42\r\n", -42, true)
	integer(":\r\n", 0, false)
	integer("+42\r\n", 0, false)

	isError := func(reply string, want bool) {
		t.Helper()
		if got := IsError([]byte(reply)); got != want {
			t.Errorf("IsError(%q): got %v", reply, got)
		}
	}
	isError("-ERR\r\n", true)
	isError("!3\r\nERR\r\n", true)
	isError("+OK\r\n", false)
	isError("", false)
}

// TestEncodersMeetScanner checks that the scanner reads whatever is encoded, of whatever text, as
// exactly one reply.
func TestEncodersMeetScanner(t *testing.T) {
	one := func(reply []byte) {
		t.Helper()
		var s Scanner
		if got := s.Scan(reply); got != Done || s.Len() != len(reply) {
			t.Errorf("%q: got %v of %d bytes", reply, got, s.Len())
		}
	}
	for _, text := range []string{"", "OK", "\r\n", "a\nb\rc", "\r", "\n+OK\r\n", strings.Repeat("\r\n", 100)} {
		one(AppendSimple(nil, text))
		one(AppendError(nil, text))
		one(AppendErrorBytes(nil, []byte(text)))
		one(AppendBulkString(nil, text))
		one(AppendRequest(nil, []byte(text), []byte(text)))
		for _, v := range []Version{RESP2, RESP3} {
			one(AppendVerbatim(nil, v, "mkd", text))
			one(AppendNull(nil, v))
			one(AppendNullArray(nil, v))
			one(AppendDouble(nil, v, -math.Pi))
			one(AppendInt(AppendBulkString(AppendMap(nil, v, 1), text), 1))
			one(AppendInt(AppendSet(nil, v, 1), math.MinInt64))
		}
	}
}
