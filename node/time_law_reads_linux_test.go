//go:build linux && !race

package node

import (
	"fmt"
	"maps"
	"testing"
)

// hostileReads is hostile for XREAD and XREADGROUP.
var hostileReads = map[string]string{
	"xread": "STREAMS {k}stream 0; COUNT 15000 STREAMS {k}stream 10; STREAMS {k}stream +; STREAMS {k}stream {k}stream 0 0; " +
		"COUNT 1 STREAMS {k}stream 19000; STREAMS {k}gone 0; STREAMS ( {k}# )",
	"xreadgroup": "GROUP g c STREAMS {k}stream 0; GROUP h d STREAMS {k}stream >; GROUP h d NOACK STREAMS {k}stream >; " +
		"GROUP g d CLAIM 0 STREAMS {k}stream >; GROUP g d COUNT 10 CLAIM 1000000 STREAMS {k}stream >; GROUP g c STREAMS {k}gone 0; " +
		"GROUP g d CLAIM 0 STREAMS {k}gone >; GROUP g LONG STREAMS {k}stream >; GROUP LONG c STREAMS {k}stream >",
}

func init() { maps.Copy(hostile, hostileReads) }

// TestTimeLawOfReads: nor does it take long to read very many streams, or to serve very many who wait for one.
func TestTimeLawOfReads(t *testing.T) {
	if !locksAreTimed {
		t.Skip("needs the build tag checked")
	}
	rig := newLawRig(t, startLeveled)
	c := dial(t, rig.node.Addr())
	const all, clients = 5000, 1000
	many := func(streams int, words []string, id string) (args [][]byte) {
		for _, w := range words {
			args = append(args, []byte(w))
		}
		for i := range streams {
			args = append(args, fmt.Appendf(nil, "{k}%d", i))
		}
		for range streams {
			args = append(args, []byte(id))
		}
		return args
	}
	var streams [][]string
	for i := range all {
		key := fmt.Sprint("{k}", i)
		streams = append(streams, []string{"XADD", key, "1", "f", "v"}, []string{"XGROUP", "CREATE", key, "g", "0"})
	}
	c.run(streams)
	rig.judge("XREAD of many streams", func() cost { return rig.once("client", many(all, []string{"XREAD", "STREAMS"}, "0")) })
	rig.judge("XREADGROUP of many streams", func() cost {
		return rig.once("client", many(all, []string{"XREADGROUP", "GROUP", "g", "c", "STREAMS"}, ">"))
	})
	rig.judge("XREADGROUP of many streams that waits", func() cost {
		return rig.once("client", many(64, []string{"XREADGROUP", "BLOCK", "1", "GROUP", "g", "c", "STREAMS"}, ">"))
	})

	for i := range 256 { // 2,000 pending entries in each
		addEntries(t, c, fmt.Sprintf("{k}%d", i), 2, 2000, "f v")
		c.bytesOf(fmt.Sprintf("XREADGROUP GROUP g c STREAMS {k}%d >", i))
	}
	// age has groups look at all that is pending: an entry was idle for long, and is no more.
	age := func(streams int) {
		for i := range streams {
			for _, idle := range []int{2_000_000_000, 0} {
				c.want(fmt.Sprintf("XCLAIM {k}%d g c 0 1 IDLE %d JUSTID", i, idle), `1) "1-0"`)
			}
		}
	}
	claim := []string{"XREADGROUP", "GROUP", "g", "d", "CLAIM", "1000000000", "STREAMS"}
	rig.judge("XREADGROUP of much that is pending", func() cost {
		age(64)
		return rig.once("client", many(64, claim, ">"))
	})
	rig.judge("XREADGROUP of much that is pending, that waits", func() cost {
		age(64)
		return rig.once("client", many(64, append([]string{"XREADGROUP", "BLOCK", "1"}, claim[1:]...), ">"))
	})
	rig.judge("a claim of much that is pending", func() cost {
		age(256)
		c.do("XCLAIM {k}255 g c 0 1 IDLE 2000000000 JUSTID") // it is told
		return rig.once("pipe", many(256, []string{"DUNLIN", "CLAIM", "0", "g", "g", "1000000000"}, ">")[:6+256])
	})

	serveWith := func(what, wait string, clients int, request [][]byte) {
		rig.judge(what, func() cost {
			c.do("DEL {w}")
			c.do("XGROUP CREATE {w} g $ MKSTREAM")
			var waiting []*client
			for range clients {
				w := dial(t, rig.node.Addr())
				w.send(wait)
				waiting = append(waiting, w)
			}
			awaitBlocked(t, rig.node, int64(clients))
			spent := rig.once("client", request)
			for _, w := range waiting {
				w.conn.Close()
			}
			awaitBlocked(t, rig.node, 0)
			return spent
		})
	}
	serve := func(what, wait, line string) { serveWith(what, wait, clients, requestOf(line, 1000)) }
	serve("an entry for many who read", "XREAD BLOCK 0 STREAMS {w} $", "XADD {w} 1 f v")
	serve("an entry for many of a group", "XREADGROUP GROUP g c BLOCK 0 STREAMS {w} >", "XADD {w} 1 f v")
	serve("the end of a group for which many wait", "XREADGROUP GROUP g c BLOCK 0 STREAMS {w} >", "XGROUP DESTROY {w} g")
	serve("the end of all keys", "XREADGROUP GROUP g c BLOCK 0 STREAMS {w} >", "FLUSHALL")
	serve("an entry that many who wait have seen", "XREAD BLOCK 0 STREAMS {w} 9", "XADD {w} 1 f v")
	wide := requestOf("XADD {w} 1", 1000)
	for i := range 200_000 {
		wide = append(wide, fmt.Append(nil, i))
	}
	more := []byte("for i = 1, 64 do for j = 1, 256 do redis.call('XADD', '{w}' .. i, j, 'f', 'v') end end")
	rig.judge("many entries of many streams", func() cost {
		waits := many(0, []string{"XREADGROUP", "GROUP", "g", "c", "BLOCK", "0", "STREAMS"}, "")
		for i := range 64 {
			c.do(fmt.Sprintf("DEL {w}%d", i+1))
			c.do(fmt.Sprintf("XGROUP CREATE {w}%d g 0 MKSTREAM", i+1))
			waits = append(waits, fmt.Appendf(nil, "{w}%d", i+1))
		}
		for range 64 {
			waits = append(waits, []byte(">"))
		}
		w := dial(t, rig.node.Addr())
		defer w.conn.Close()
		w.sendArgs(waits...)
		awaitBlocked(t, rig.node, 1)
		return rig.once("client", [][]byte{[]byte("EVAL"), more, []byte("1"), []byte("{w}")})
	})
	serveWith("an entry of very many fields for who reads", "XREAD BLOCK 0 STREAMS {w} $", 5, wide)
	serveWith("an entry of very many fields for who is in a group", "XREADGROUP GROUP g c BLOCK 0 STREAMS {w} >", 5, wide)
}
