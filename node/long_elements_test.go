package node

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// longStrings are strings that are uploaded, pinned and handed over rather than copied, by the words of
// TestLongElements. A and E have one length, and differ at their ends.
func longStrings() map[string][]byte {
	dice := rand.New(rand.NewPCG(1, 2))
	all := make(map[string][]byte)
	for word, n := range map[string]int{"A": 300_000, "B": 66_000, "C": 1_300_000, "D": 20_000} {
		all[word] = make([]byte, n)
		for i := range all[word] {
			all[word][i] = byte('a' + dice.IntN(26))
		}
	}
	all["E"] = append(bytes.Clone(all["A"][:299_999]), '!')
	return all
}

// longKeys are the words of longConversation that name keys.
const longKeys = " h h2 h3 h4 l m n o p q s none "

// longConversation has what is sent, and the reply with CRLF as spaces.
const longConversation = `
HSET h f A g B i D 1 2              | :4
HSET h f C f A k v                  | :1
HGET h f                            | A
HGET h nope                         | $-1
HMGET h i f g                       | *3 D A B
HSETNX h f C                        | :0
HSETNX h j C                        | :1
HSTRLEN h j                         | :1300000
HVALS h2                            | *0
HSET h2 f A                         | :1
HSET h2 f B                         | :0
HGETALL h2                          | *2 $1 f B
HSETEX h2 EX 100 FIELDS 2 f C g A   | :1
HVALS h2                            | *2 C A
HRANDFIELD h2 2 WITHVALUES          | *4 $1 f C $1 g A
HSCAN h2 0                          | *2 $1 0 *4 $1 f C $1 g A
HGETDEL h2 FIELDS 2 f g             | *2 C A
EXISTS h2                           | :0
HDEL h k i 1                        | :3
COPY h h3                           | :1
HMGET h3 f g j                      | *3 A B C
HSET h f B                          | :0
HGET h3 f                           | A
RESTORE h4 0 DUMP(h3)               | +OK
HMGET h4 f g j                      | *3 A B C
RPUSH l A x B                       | :3
LPUSH l C y                         | :5
LRANGE l 0 -1                       | *5 $1 y C A $1 x B
LINDEX l 1                          | C
LSET l 0 E                          | +OK
LSET l 3 D                          | +OK
LINSERT l BEFORE E B                | :6
LINSERT l AFTER E A                 | :7
LINSERT l AFTER nope A              | :-1
LRANGE l 0 -1                       | *7 B E A C A D B
LPOS l A                            | :2
LPOS l A RANK -1                    | :4
LPOS l A COUNT 0                    | *2 :2 :4
LPOS l E COUNT 0                    | *1 :1
LPOS l x                            | $-1
LMOVE l l LEFT RIGHT                | B
LMOVE l l RIGHT RIGHT               | B
LMOVE l m RIGHT LEFT                | B
LMOVE l m RIGHT LEFT                | B
LMOVE l m RIGHT LEFT                | D
LMOVE l m LEFT RIGHT                | E
LRANGE m 0 -1                       | *4 D B B E
LRANGE l 0 -1                       | *3 A C A
RPOPLPUSH m m                       | E
LREM l -1 A                         | :1
LREM m 0 A                          | :0
RPUSH l A                           | :3
LREM l 0 A                          | :2
LRANGE l 0 -1                       | *1 C
LMOVE l l LEFT LEFT                 | C
LMOVE l l LEFT RIGHT                | C
LMOVE l n LEFT RIGHT                | C
EXISTS l                            | :0
RPUSHX n A                          | :2
LPUSHX n B                          | :3
COPY n o                            | :1
RESTORE p 0 DUMP(o)                 | +OK
LRANGE p 0 -1                       | *3 B C A
SORT p ALPHA STORE q                | :3
SORT p ALPHA DESC LIMIT 0 1         | SORTED
SORT q BY nosort                    | SORTED
LPOP n 2                            | *2 B C
RPOP n                              | A
LMPOP 2 none o LEFT COUNT 2         | *2 $4 {t}o *2 B C
LTRIM o 1 0                         | +OK
SET s x                             | +OK
RPUSH s A                           | -WRONGTYPE Operation against a key holding the wrong kind of value
HSET s f A                          | -WRONGTYPE Operation against a key holding the wrong kind of value
LSET none 0 A                       | -ERR no such key
LSET p 7 A                          | -ERR index out of range
HSET h f A g                        | -ERR wrong number of arguments for 'hset' command
DEL p q m h h3 h4                   | :6
`

// TestLongElements: commands do with long strings what they do with short ones, outside of a
// transaction and in one, and return all memory.
func TestLongElements(t *testing.T) {
	forOneClient(t)
	long := longStrings()
	order := []string{"A", "B", "C", "D", "E"}
	n := startLeveled(t, func(c *Config) { c.Memory, c.Group = 128<<20, newGroup(t, 1) })
	sorted := sortedWords(long, "B", "C", "A")
	for _, way := range []string{"alone", "MULTI"} {
		c := dial(t, n.Addr())
		for line := range strings.Lines(longConversation) {
			ask, want, ok := strings.Cut(strings.TrimSpace(line), "|")
			if !ok {
				continue
			}
			want = strings.TrimSpace(want)
			if want == "SORTED" {
				want = "*3 " + sorted
				if strings.Contains(ask, "DESC") {
					want = "*1 " + sorted[4:]
				}
			}
			var args [][]byte
			for w := range strings.FieldsSeq(ask) {
				switch key, dumped := strings.CutPrefix(w, "DUMP("); {
				case dumped:
					payload := c.long("DUMP", "{t}"+strings.TrimSuffix(key, ")"))
					_, payload, _ = bytes.Cut(payload, []byte("\r\n"))
					args = append(args, payload[:len(payload)-2])
				case strings.Contains(longKeys, " "+w+" "):
					args = append(args, []byte("{t}"+w))
				case long[w] != nil:
					args = append(args, long[w])
				default:
					args = append(args, []byte(w))
				}
			}
			if way == "MULTI" {
				c.want("MULTI", "OK")
				c.sendArgs(args...)
				if got := c.next(); got != "QUEUED" {
					t.Errorf("%s is answered with %s", ask, got)
				}
				args = [][]byte{[]byte("EXEC")}
				want = "*1 " + want
			}
			c.sendArgs(args...)
			got := bytes.Clone(c.read())
			for _, word := range order {
				got = bytes.ReplaceAll(got, fmt.Appendf(nil, "$%d\r\n%s\r\n", len(long[word]), long[word]), []byte(word+"\r\n"))
			}
			text := strings.TrimSpace(strings.ReplaceAll(string(got), "\r\n", " "))
			if text != want && !sameFields(text, want) {
				t.Errorf("%s: %s answers %.200q, want %q", way, ask, text, want)
			}
		}
		eventually(t, "the memory of long strings is given back", func() bool {
			st := n.engine.Stats()
			return st.Staged == 0 && st.Pinned == 0 && st.Parts == 0
		})
	}
}

// TestLongMembers: commands that go on in runs, because members are long, answer and remove each member
// once.
func TestLongMembers(t *testing.T) {
	forOneClient(t)
	const all, some = 40, 30
	n := startLeveled(t, func(c *Config) { c.Memory, c.Group = 64<<20, newGroup(t, 1) })
	c := dial(t, n.Addr())
	var sadd, zadd [][]byte
	for i := range all {
		member := fmt.Appendf(bytes.Repeat([]byte("m"), 30_000), "%02d", i)
		sadd, zadd = append(sadd, member), append(zadd, fmt.Append(nil, i), member)
	}
	// count sends a command and returns how many members its reply has, and how many different ones.
	count := func(line string) (members, different int) {
		seen := make(map[string]bool)
		for word := range bytes.SplitSeq(c.long(strings.Fields(line)...), []byte("\r\n")) {
			if len(word) > 30_000 {
				members++
				seen[string(word)] = true
			}
		}
		return members, len(seen)
	}
	for _, test := range []struct {
		line            string
		want, different int
		left            string
	}{
		{"SPOP {t}s 30", some, some, "SCARD {t}s"},
		{"ZPOPMIN {t}z 30", some, some, "ZCARD {t}z"},
		{"ZPOPMAX {t}z 30", some, some, "ZCARD {t}z"},
		{"ZMPOP 1 {t}z MAX COUNT 30", some, some, "ZCARD {t}z"},
		{"ZREMRANGEBYRANK {t}z 3 32", 0, 0, "ZCARD {t}z"},
		{"SRANDMEMBER {t}s 30", some, some, ""},
		{"SRANDMEMBER {t}s 10", 10, 10, ""},
		{"SRANDMEMBER {t}s -200", 200, -1, ""},
		{"ZRANDMEMBER {t}z 30", some, some, ""},
		{"ZRANDMEMBER {t}z -200 WITHSCORES", 200, -1, ""},
		{"SINTER {t}s {t}s", all, all, ""},
		{"SUNION {t}s {t}z2 {t}s", all, all, ""},
		{"ZUNION 2 {t}s {t}z", all, all, ""},
		{"ZDIFF 2 {t}z {t}none", all, all, ""},
		{"SDIFFSTORE {t}d {t}s {t}none", 0, 0, ""},
		{"SMEMBERS {t}d", all, all, ""},
		{"ZRANGESTORE {t}d {t}z 5 34", 0, 0, ""},
		{"ZRANGE {t}d 0 -1", some, some, ""},
	} {
		for key, args := range map[string][][]byte{"SADD {t}s": sadd, "ZADD {t}z": zadd} {
			c.sendArgs(append(bytes.Fields([]byte(key)), args...)...)
			c.read()
		}
		members, different := count(test.line)
		if members != test.want || different != test.different && test.different >= 0 {
			t.Errorf("%s answers %d members, %d different ones", test.line, members, different)
		}
		if test.left != "" {
			c.want(test.left, fmt.Sprintf("(integer) %d", all-some))
		}
	}
}

// sameFields reports whether two replies have the same fields of a hash in another order.
func sameFields(a, b string) bool {
	x, y := strings.Fields(a), strings.Fields(b)
	if len(x) != len(y) || len(x) < 2 || !strings.Contains(b, "$1 f") && b != "*2 C A" && b != "*1 *2 C A" {
		return false
	}
	count := make(map[string]int)
	for i := range x {
		count[x[i]]++
		count[y[i]]--
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}

// sortedWords returns words in the order of their strings.
func sortedWords(long map[string][]byte, words ...string) string {
	for i := range words {
		for j := range i {
			if bytes.Compare(long[words[i]], long[words[j]]) < 0 {
				words[i], words[j] = words[j], words[i]
			}
		}
	}
	return strings.Join(words, " ")
}

// long sends a command of a few words and returns the whole reply.
func (c *client) long(args ...string) []byte {
	all := make([][]byte, len(args))
	for i, a := range args {
		all[i] = []byte(a)
	}
	c.sendArgs(all...)
	return bytes.Clone(c.read())
}
