package differential

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// listed is a difference that is meant, or a fault of the server that Dunlin is compared with.
// docs/compatibility.md tells users of those that concern them.
type listedDifference struct {
	why     string
	since   int  // versions of redis-server, as redisVersion counts them
	before  int  // 0: all from since on
	parts   bool // the servers may hold different values from then on
	applies func(args []string, got, want reply) bool
}

var listed = []listedDifference{
	{why: "a key, a field or a member has at most 65,535 bytes", parts: true,
		applies: func(_ []string, got, _ reply) bool {
			return strings.HasPrefix(got.text, "ERR key exceeds maximum allowed size")
		}},
	{why: "a cursor is read as Redis 7 and C's strtoul do, which take a sign and nothing", since: 800,
		applies: func(_ []string, _, want reply) bool { return want.text == "ERR invalid cursor" }},
	// Redis 7 and 8 keep the sign of a -0 that is added to a skiplist, and drop it in a listpack, which
	// stores whole numbers as integers. When a set changes its form, 0 stays what it is.
	{why: "a score of -0 reads as 0",
		applies: func(args []string, got, want reply) bool { return args[0][0]|0x20 == 'z' && sameNumbers(got, want, 0) }},
	{why: "a number can be hexadecimal and must have a finite value, as in Redis 7 and Valkey", since: 800, parts: true,
		applies: func(_ []string, got, want reply) bool {
			return got.text == "ERR One or more scores can't be converted into double" || want.text == "ERR min or max is not a float" || want.text == "ERR One or more scores can't be converted into double"
		}},
	{why: "the SORT of Redis 7 takes an error of an earlier number for one of its own", before: 800, parts: true,
		applies: func(_ []string, _, want reply) bool {
			return want.text == "ERR One or more scores can't be converted into double"
		}},
	{why: "LREM refuses a count whose negation overflows, as Redis 8 does", before: 800, parts: true,
		applies: func(args []string, got, _ reply) bool {
			return strings.EqualFold(args[0], "LREM") && strings.HasPrefix(got.text, "ERR value is out of range")
		}},
	{why: "LPOS refuses a rank whose negation overflows, as Redis 8 does", before: 800,
		applies: func(args []string, got, _ reply) bool {
			return strings.EqualFold(args[0], "LPOS") && strings.HasPrefix(got.text, "ERR value is out of range")
		}},
	{why: "Redis 7.0 calls a limit negative that overflows",
		applies: func(_ []string, got, want reply) bool {
			return got.text == "ERR timeout is out of range" && want.text == "ERR timeout is negative"
		}},
	{why: "ZRANK takes WITHSCORE from Redis 7.2 on", before: 702,
		applies: func(args []string, got, want reply) bool {
			return strings.HasSuffix(strings.ToUpper(args[0]), "RANK") && strings.HasPrefix(want.text, "ERR wrong number")
		}},
	{why: "an unbalanced list of streams has the text of Redis 7.2", before: 702,
		applies: func(_ []string, got, want reply) bool {
			return strings.HasPrefix(got.text, "ERR Unbalanced") && strings.HasPrefix(want.text, "ERR Unbalanced")
		}},
	{why: "the lag of a group, and what it has read, are those of Redis 8, which knows what was trimmed", before: 800,
		applies: func(args []string, got, want reply) bool {
			const lag, read = "lag", "entries-read"
			return strings.EqualFold(args[0], "XINFO") && sameReply(args, got.without(lag, read), want.without(lag, read), false)
		}},
	{why: "XSETID refuses an ID below that of the last deleted entry, as Redis 7.2 does", before: 702, parts: true,
		applies: func(_ []string, got, _ reply) bool {
			return got.text == "ERR The ID specified in XSETID is smaller than current max_deleted_entry_id"
		}},
	{why: "XREAD knows the ID + from Redis 7.4 on, and XREADGROUP refuses it by a text of its own", before: 704,
		applies: func(args []string, _, want reply) bool {
			return strings.HasPrefix(strings.ToUpper(args[0]), "XREAD") && slices.Contains(args, "+") && strings.HasPrefix(want.text, "ERR Invalid stream ID")
		}},
	{why: "a coordinate is written with 17 digits, as Redis 7 does: the same number", since: 702,
		applies: func(args []string, got, want reply) bool {
			return isGeo(args) && sameNumbers(got, want, 1e-9)
		}},
	{why: "a stored distance may differ in its last digit",
		applies: func(args []string, got, want reply) bool {
			return strings.HasPrefix(strings.ToUpper(args[0]), "Z") && strings.HasSuffix(args[1], "distances") && sameNumbers(got, want, 1e-14)
		}},
	{why: "a list of 8 KiB, give or take a few bytes, may have either encoding", since: 702,
		applies: func(args []string, got, want reply) bool {
			return strings.EqualFold(args[0], "OBJECT") && got.text == "quicklist" && want.text == "listpack"
		}},
	{why: "an encoding is the one for the present elements, and Redis's is never smaller",
		applies: func(args []string, got, want reply) bool {
			small := []string{"int", "embstr", "intset", "listpack", "listpackex"}
			return strings.EqualFold(args[0], "OBJECT") && slices.Contains(small, got.text) && got.kind == want.kind
		}},
}

func isGeo(args []string) bool { return strings.HasPrefix(strings.ToUpper(args[0]), "GEO") }

// findListed returns the difference that allows two replies to differ, or nil.
func findListed(args []string, got, want reply, version int) *listedDifference {
	for i := range listed {
		if l := &listed[i]; version >= l.since && (l.before == 0 || version < l.before) && l.applies(args, got, want) {
			return l
		}
	}
	return nil
}

// sameNumbers reports whether two replies are the same but for numbers that differ by a part, at
// most.
func sameNumbers(got, want reply, part float64) bool {
	if got.kind != want.kind || len(got.items) != len(want.items) {
		return false
	}
	for i := range got.items {
		if !sameNumbers(got.items[i], want.items[i], part) {
			return false
		}
	}
	if got.text == want.text {
		return true
	}
	a, err1 := strconv.ParseFloat(got.text, 64)
	b, err2 := strconv.ParseFloat(want.text, 64)
	return err1 == nil && err2 == nil && math.Abs(a-b) <= part*math.Abs(a)
}
