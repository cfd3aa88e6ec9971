package streams

import (
	"math"
	"strings"
	"testing"
)

func TestIDsAreParsedAsByTheCLibrary(t *testing.T) {
	f := func(arg string, want ID, wantOK bool) {
		t.Helper()
		if id, ok := parseID([]byte(arg), 7); ok != wantOK || ok && id != want {
			t.Errorf("%q is %v, %v, want %v, %v", arg, id, ok, want, wantOK)
		}
	}
	f("1-2", ID{1, 2}, true)
	f("1", ID{1, 7}, true)
	f("18446744073709551615-18446744073709551615", maxID, true)
	f("18446744073709551616-0", ID{}, false)
	f("0-18446744073709551616", ID{}, false)
	f("0-0", minID, true)
	f("007-08", ID{7, 8}, true)
	f("+1-+2", ID{1, 2}, true)
	f(" 1-\t2", ID{1, 2}, true)
	f("1-2 ", ID{}, false)
	f("1-2\x00junk", ID{1, 2}, true)
	f("1--1", ID{}, false)
	f("1--01", ID{1, math.MaxUint64}, true)
	f("1- -1", ID{1, math.MaxUint64}, true)
	f("1--9223372036854775808", ID{}, false)
	f("1--9223372036854775809", ID{1, math.MaxInt64}, true)
	f("", ID{}, false)
	f("-", ID{}, false)
	f("+", ID{}, false)
	f("1-", ID{}, false)
	f("-1", ID{}, false)
	f("1-2-3", ID{}, false)
	f("1-x", ID{}, false)
	f("1-*", ID{}, false)
	f("1-"+strings.Repeat("0", 124)+"5", ID{1, 5}, true)
	f("1-"+strings.Repeat("0", 125)+"5", ID{}, false)
}

// TestLag has a stream of 5 entries 1-0 to 5-0, unless a case says otherwise.
func TestLag(t *testing.T) {
	stream := info{first: ID{1, 0}, last: ID{5, 0}, added: 5}
	f := func(name string, i info, length int, g group, want int64, wantKnown bool) {
		t.Helper()
		if n, known := i.lag(length, &g); n != want || known != wantKnown {
			t.Errorf("%s: the lag is %d, %v, want %d, %v", name, n, known, want, wantKnown)
		}
	}
	f("nothing was ever added", info{}, 0, group{last: ID{9, 0}, read: readUnknown}, 0, true)
	f("all were deleted", info{last: ID{5, 0}, maxDeleted: ID{5, 0}, added: 5}, 0, group{read: readUnknown}, 0, true)
	f("none is read", stream, 5, group{read: readUnknown}, 5, true)
	f("the first is read", stream, 5, group{last: ID{1, 0}, read: readUnknown}, 4, true)
	f("some are read", stream, 5, group{last: ID{3, 0}, read: 3}, 2, true)
	f("nobody knows how many", stream, 5, group{last: ID{3, 0}, read: readUnknown}, 0, false)
	f("all are read", stream, 5, group{last: ID{5, 0}, read: readUnknown}, 0, true)
	f("an ID that is not there yet", stream, 5, group{last: ID{6, 0}, read: readUnknown}, 0, false)
	holed := stream
	holed.maxDeleted = ID{3, 0}
	f("one in front was deleted", holed, 4, group{last: ID{2, 0}, read: 2}, 0, false)
	f("one behind was deleted", holed, 4, group{last: ID{4, 0}, read: 4}, 1, true)
	f("none is read, and one was deleted", holed, 4, group{read: 0}, 0, false)
	trimmed := info{first: ID{4, 0}, last: ID{5, 0}, added: 5}
	f("the unread ones were trimmed", trimmed, 2, group{last: ID{2, 0}, read: 2}, 2, true)
	trimmed.maxDeleted = ID{3, 0}
	f("and one of them deleted before", trimmed, 2, group{last: ID{2, 0}, read: 2}, 2, true)
}
