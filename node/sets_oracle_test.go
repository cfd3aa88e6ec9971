package node

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/conversation"
	"github.com/dunlin-cache/dunlin/internal/redistest"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// setLines makes random lines on a few sets, small and big ones.
type setLines struct{ *rand.Rand }

func (g setLines) pick(of ...string) string { return of[g.IntN(len(of))] }

func (g setLines) key() string {
	return g.pick("{t}a", "{t}b", "{t}c", "{t}d", "{t}big", "{t}other", "{t}none")
}

func (g setLines) some(f func() string, most int) string {
	var all []string
	for range 1 + g.IntN(most) {
		all = append(all, f())
	}
	return strings.Join(all, " ")
}

func (g setLines) member() string {
	return g.pick(fmt.Sprint(g.IntN(60)), fmt.Sprint(g.IntN(2000)), fmt.Sprint("m", g.IntN(60)), `""`, strings.Repeat("x", 60+g.IntN(10)), "1e3")
}

func (g setLines) line() string {
	k := g.key()
	switch g.IntN(22) {
	case 0, 1, 2, 3:
		return "SADD " + k + " " + g.some(g.member, 40)
	case 4, 5:
		return "SREM " + k + " " + g.some(g.member, 40)
	case 6:
		return "SMISMEMBER " + k + " " + g.some(g.member, 30)
	case 7:
		return g.pick("SCARD ", "TYPE ", "DEL ", "SMEMBERS ", "EXISTS ") + k
	case 8:
		return "SMOVE " + k + " " + g.key() + " " + g.member()
	case 9:
		return "SISMEMBER " + k + " " + g.member()
	case 10:
		return "SPOP " + k + " " + g.pick("0", "-1", "x", "100000")
	case 11:
		return "SRANDMEMBER " + k + " " + g.pick("0", "100000", "x", "-9223372036854775808")
	case 12:
		return "SET " + g.pick("{t}d", "{t}none") + " v"
	case 13:
		return "SINTERCARD " + g.pick("1 ", "2 ", "3 ", "0 ", "x ", "99 ") + g.some(g.key, 4) + g.pick("", "", " LIMIT 3", " LIMIT 0", " LIMIT -1", " LIMIT", " what 3", " LIMIT x", " LIMIT 2 LIMIT 4")
	case 14, 15, 16, 17:
		return g.pick("SINTERSTORE ", "SUNIONSTORE ", "SDIFFSTORE ") + g.pick("{t}a", "{t}b", "{t}c", "{t}d", "{t}big") + " " + g.some(g.key, 4)
	case 18:
		return g.pick("RENAME ", "RENAMENX ", "COPY ") + k + " " + g.key()
	case 19:
		return g.pick("SADD {t}a", "SPOP", "SMOVE {t}a {t}b", "SINTER", "SINTERSTORE {t}a", "SPOP {t}a 1 2", "SRANDMEMBER {t}a 1 2", "SINTERCARD 1", "SMISMEMBER {t}a")
	}
	return g.pick("SINTER ", "SUNION ", "SDIFF ") + g.some(g.key, 4)
}

// inOrder is a reply whose strings are in an order of their own, unless the command has one.
func inOrder(line string, reply []byte) string {
	verb, _, _ := strings.Cut(line, " ")
	n, at, ok := resp.DecodeArray(reply)
	if !ok || verb == "SMISMEMBER" {
		return conversation.Text(reply)
	}
	var all []string
	for range n {
		var s []byte
		s, at = resp.DecodeArgument(reply, at)
		all = append(all, string(s))
	}
	slices.Sort(all)
	return fmt.Sprintf("%q", all)
}

// TestSetsOracle compares replies with redis-server's.
func TestSetsOracle(t *testing.T) {
	forOneClient(t)
	redistest.Want(t, "7.0")
	ours, theirs := dial(t, startLeveled(t).Addr()), dial(t, redistest.Start(t))
	for seed := range uint64(4) {
		g := setLines{rand.New(rand.NewPCG(seed, 3))}
		for _, c := range []*client{ours, theirs} {
			c.want("FLUSHALL", "OK")
			fillInPieces(c, "SADD", "{t}big", 1500, func(i int) []string { return []string{fmt.Sprint(i)} })
			fillInPieces(c, "SADD", "{t}other", 1500, func(i int) []string { return []string{fmt.Sprint(i * 2)} })
		}
		for range 500 {
			line := g.line()
			ours.send(line)
			theirs.send(line)
			got, want := inOrder(line, ours.read()), inOrder(line, theirs.read())
			if strings.Contains(got, "CROSSSLOT") {
				continue // an option in the place of a key
			}
			if got != want {
				t.Fatalf("seed %d: %s answers %.300s, Redis %.300s", seed, line, got, want)
			}
		}
	}
}

// A union and a difference of many sets remember members.
func TestAlgebraOfManySets(t *testing.T) {
	c := dial(t, startLeveled(t).Addr())
	keys := ""
	for i := range 80 {
		line := ""
		for j := range 20 {
			line += fmt.Sprint(" ", i*10+j)
		}
		c.want(fmt.Sprintf("SADD {t}%d%s", i, line), "(integer) 20")
		keys += fmt.Sprintf(" {t}%d", i)
	}
	c.want("SUNIONSTORE {t}u"+keys, "(integer) 810")
	c.want("SDIFFSTORE {t}d {t}u"+keys[len(" {t}0"):], "(integer) 10")
	c.want("SDIFFSTORE {t}d"+keys, "(integer) 10")
	c.want("SISMEMBER {t}d 9", "(integer) 1")
	c.want("SDIFF {t}d {t}u"+keys, "(empty array)")
	c.send("SUNION" + keys)
	c.wantArray(t, 810)
	c.want("SADD {t}s x", "(integer) 1")
	c.want("SDIFF {t}s"+keys, `1) "x"`)
}

// TestSetAlgebra: a long SUNIONSTORE and SDIFF see the sets as they were in the command's turn, in
// a transaction, too, and a failure leaves the destination alone.
func TestSetAlgebra(t *testing.T) {
	forOneClient(t)
	n := startLeveled(t)
	c := dial(t, n.Addr())
	fillInPieces(c, "SADD", "{t}a", 20_000, func(i int) []string { return []string{fmt.Sprint(i)} })
	fillInPieces(c, "SADD", "{t}b", 20_000, func(i int) []string { return []string{fmt.Sprint(i + 10_000)} })
	c.want("SUNIONSTORE {t}c {t}a {t}b", "(integer) 30000")
	c.want("SCARD {t}c", "(integer) 30000")
	c.want("SDIFFSTORE {t}d {t}c {t}a", "(integer) 10000")
	c.want("SINTERCARD 3 {t}a {t}b {t}c", "(integer) 10000")
	c.want("SINTERCARD 2 {t}a {t}b LIMIT 5000", "(integer) 5000")
	c.want("SINTERSTORE {t}a {t}a {t}b", "(integer) 10000")
	c.want("SCARD {t}a", "(integer) 10000")
	for _, line := range []string{"MULTI", "SADD {t}a x", "SUNIONSTORE {t}e {t}a {t}b", "SREM {t}a x", "SINTER {t}e {t}c", "SDIFFSTORE {t}a {t}b {t}b", "EXEC"} {
		c.send(line)
	}
	for range 6 {
		c.read()
	}
	reply := conversation.Text(c.read())
	if !strings.HasPrefix(reply, "1) (integer) 1\n2) (integer) 20001\n3) (integer) 1\n4)  1)") && !strings.HasPrefix(reply, "1) (integer) 1\n2) (integer) 20001\n3) (integer) 1\n4) ") || !strings.HasSuffix(reply, "5) (integer) 0") {
		t.Errorf("EXEC answers %.80q … %.20q", reply, reply[max(0, len(reply)-20):])
	}
	c.want("EXISTS {t}a", "(integer) 0")
	c.want("SADD {t}f keep", "(integer) 1")
	c.want("SET {t}s v", "OK")
	c.want("SUNIONSTORE {t}f {t}b {t}c {t}s", "(error) WRONGTYPE Operation against a key holding the wrong kind of value")
	c.want("SMEMBERS {t}f", `1) "keep"`)
	c.want("SINTER {t}a b", "(error) CROSSSLOT Keys in request don't hash to the same slot")
	for range 100 {
		n.engine.Sweep(1, n.engine.Pages())
	}
}
