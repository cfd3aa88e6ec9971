//go:build linux && !race

package node

import (
	"fmt"
	"maps"
)

// hostileStreams is hostile for the commands on streams. {k}stream has 20,000 entries, which are all pending
// in the group g for the consumer c, and {k}groups has many groups, in one of which there are many consumers.
var hostileStreams = map[string]string{
	"xack": "{k}stream g ( #-1 ); {k}stream g ( #-1 ) x; {k}stream none ( # )",
	"xackdel": "{k}stream g KEEPREF IDS 20000 ( 20000x #-1 ); {k}stream g DELREF IDS 20000 ( 20000x #-1 ); " +
		"{k}stream g ACKED IDS 20000 ( 20000x #-1 ); {k}stream none IDS 20000 ( 20000x #-1 )",
	"xadd": "{k}stream * ( f# v# ); {k}new * ( f# v# ); {k}stream * ( 50x # WORD ); {k}stream * f LONG; {k}stream * LONG LONG; " +
		"{k}stream MAXLEN 10 * f v; {k}stream MINID 15000 * f v; {k}stream MAXLEN ~ 10 LIMIT 0 * f v; {k}stream MAXLEN 10 DELREF * f v; " +
		"{k}stream MAXLEN 10 ACKED * f v; {k}groups MAXLEN 1 ACKED * f v; {k}stream ( NOMKSTREAM ) * f v; {k}stream LONG f v",
	"xautoclaim": "{k}stream g d 0 0 COUNT 100000; {k}stream g c 1000000 0 COUNT 100000; {k}stream g d 0 0 COUNT 100000 JUSTID; " +
		"{k}gone g d 0 0 COUNT 100000; {k}stream g c 0 0 ( JUSTID )",
	"xclaim": "{k}stream g d 0 ( #-1 ); {k}stream g d 0 ( #-1 ) JUSTID; {k}stream h d 0 ( 20000x #-1 ) FORCE; {k}gone g d 0 ( #-1 ); " +
		"{k}stream g c 0 1-1 ( FORCE )",
	"xdel": "{k}stream ( #-1 ); {k}stream 1-1 ( # ); {k}stream ( #-1 ) x",
	"xdelex": "{k}stream IDS 20000 ( 20000x #-1 ); {k}stream DELREF IDS 20000 ( 20000x #-1 ); {k}stream ACKED IDS 20000 ( 20000x #-1 ); " +
		"{k}groups ACKED IDS 20000 ( 20000x #-1 ); {k}groups DELREF IDS 20000 ( 20000x #-1 )",
	"xgroup|create":         "{k}stream n 0; {k}groups n $ ( MKSTREAM ); {k}new LONG 0 MKSTREAM",
	"xgroup|createconsumer": "{k}stream g n; {k}groups g0 n; {k}stream g LONG",
	"xgroup|delconsumer":    "{k}stream g c",
	"xgroup|destroy":        "{k}stream g; {k}groups g0",
	"xgroup|setid":          "{k}stream g $ ( ENTRIESREAD 1 )",
	"xinfo|consumers":       "{k}groups g0; {k}stream g",
	"xinfo|groups":          "{k}groups",
	"xinfo|stream":          "{k}stream; {k}stream FULL; {k}stream FULL COUNT 0; {k}groups FULL",
	"xlen":                  "{k}stream",
	"xpending": "{k}stream g; {k}groups g0; {k}stream g - + 100000; {k}stream g IDLE 100000 - + 10; {k}stream g - + 10 c; " +
		"{k}stream g 10000 + 1000",
	"xrange":    "{k}stream - +; {k}stream 5000 +; {k}stream 5000 + COUNT 1000; {k}stream 5000 + ( COUNT 1 )",
	"xrevrange": "{k}stream + -; {k}stream 15000 - COUNT 1000",
	"xsetid":    "{k}stream 9999999999999 ( ENTRIESADDED 20000 )",
	"xtrim": "{k}stream MAXLEN 0; {k}stream MAXLEN 1; {k}stream MINID 19999; {k}stream MAXLEN ~ 1 LIMIT 0; {k}stream MAXLEN 1 DELREF; " +
		"{k}stream MINID 19999 ACKED; {k}groups MAXLEN 0 ACKED; {k}stream MAXLEN ~ 0 ( LIMIT 1 )",
}

func init() {
	maps.Copy(hostile, hostileStreams)
	maps.Copy(bigOfLaw, map[string]func(c *client, key string){
		"{k}stream": fillStream,
		"{k}gone": func(c *client, key string) { // the entries are
			fillStream(c, key)
			c.do("XTRIM " + key + " MAXLEN 0")
		},
		"{k}groups": func(c *client, key string) {
			var all [][]string
			for i := range 20 {
				all = append(all, []string{"XADD", key, fmt.Sprint(i, "-1"), "f", "v"})
			}
			for i := range 2000 {
				all = append(all, []string{"XGROUP", "CREATE", key, fmt.Sprint("g", i), "$"},
					[]string{"XGROUP", "CREATECONSUMER", key, "g0", fmt.Sprint("c", i)})
			}
			c.run(all)
		},
	})
}

func fillStream(c *client, key string) {
	c.do(`EVAL "for i = 0, 19999 do redis.call('XADD', KEYS[1], i .. '-1', 'field', i) end" 1 ` + key)
	c.do("XGROUP CREATE " + key + " g $")
	c.do("XGROUP CREATE " + key + " h 0")
	for from := range 20 {
		args := [][]byte{[]byte("XCLAIM"), []byte(key), []byte("g"), []byte("c"), []byte("0")}
		for i := range 1000 {
			args = append(args, fmt.Append(nil, from*1000+i, "-1"))
		}
		c.sendArgs(append(args, []byte("FORCE"), []byte("JUSTID"))...)
		c.read()
	}
}
