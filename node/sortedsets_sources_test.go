package node

import (
	"fmt"
	"testing"
)

// TestPlainSetsAsSources: commands that combine sorted sets take the members of plain ones too,
// with the score 1, whether these are packed or have parts.
func TestPlainSetsAsSources(t *testing.T) {
	forOneClient(t)
	n := startLeveled(t)
	c := dial(t, n.Addr())
	for _, many := range []int{0, 3000} {
		c.do("DEL {k}s {k}z {k}d")
		c.want("SADD {k}s a b 7", "(integer) 3")
		c.want("ZADD {k}z 5 b 6 c", "(integer) 2")
		for from := 0; from < many; from += 500 {
			args := [][]byte{[]byte("SADD"), []byte("{k}s")}
			for i := range 500 {
				args = append(args, fmt.Append(nil, "m", from+i))
			}
			c.sendArgs(args...)
			c.next()
		}
		c.want("ZINTER 2 {k}s {k}z WITHSCORES", "1) \"b\"\n2) \"6\"")
		c.want("ZINTER 2 {k}z {k}s WEIGHTS 2 3 AGGREGATE MIN WITHSCORES", "1) \"b\"\n2) \"3\"")
		c.want("ZINTERCARD 2 {k}s {k}z", "(integer) 1")
		c.want("ZDIFF 2 {k}z {k}s WITHSCORES", "1) \"c\"\n2) \"6\"")
		c.want("ZDIFFSTORE {k}d 2 {k}s {k}z", fmt.Sprintf("(integer) %d", 2+many))
		c.want("ZSCORE {k}d 7", `"1"`)
		c.want("ZSCORE {k}d b", "(nil)")
		c.want("ZUNIONSTORE {k}d 2 {k}s {k}z WEIGHTS 10 1", fmt.Sprintf("(integer) %d", 4+many))
		c.want("ZMSCORE {k}d a b c 7", "1) \"10\"\n2) \"15\"\n3) \"6\"\n4) \"10\"")
		c.want("ZCOUNT {k}d 10 10", fmt.Sprintf("(integer) %d", 2+many))
		c.want("ZINTERSTORE {k}s 1 {k}s", fmt.Sprintf("(integer) %d", 3+many))
		c.want("TYPE {k}s", "zset")
	}
	c.want("SET {k}no x", "OK")
	c.want("ZUNION 2 {k}z {k}no", "(error) WRONGTYPE Operation against a key holding the wrong kind of value")
}
