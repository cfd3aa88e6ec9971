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
	for i := range all {
		c.do(fmt.Sprintf("XADD {k}%d 1 f v", i))
		c.do(fmt.Sprintf("XGROUP CREATE {k}%d g 0", i))
	}
	rig.judge("XREAD of many streams", func() cost { return rig.once("client", many(all, []string{"XREAD", "STREAMS"}, "0")) })
	rig.judge("XREADGROUP of many streams", func() cost {
		return rig.once("client", many(all, []string{"XREADGROUP", "GROUP", "g", "c", "STREAMS"}, ">"))
	})
	rig.judge("XREADGROUP of many streams that waits", func() cost {
		return rig.once("client", many(64, []string{"XREADGROUP", "BLOCK", "1", "GROUP", "g", "c", "STREAMS"}, ">"))
	})

	serve := func(what, wait, line string) {
		rig.judge(what, func() cost {
			c.do("DEL {w}")
			c.do("XGROUP CREATE {w} g $ MKSTREAM")
			var waiting []*client
			for range clients {
				w := dial(t, rig.node.Addr())
				w.send(wait)
				waiting = append(waiting, w)
			}
			awaitBlocked(t, rig.node, clients)
			spent := rig.once("client", requestOf(line, 1000))
			for _, w := range waiting {
				w.conn.Close()
			}
			awaitBlocked(t, rig.node, 0)
			return spent
		})
	}
	serve("an entry for many who read", "XREAD BLOCK 0 STREAMS {w} $", "XADD {w} 1 f v")
	serve("an entry for many of a group", "XREADGROUP GROUP g c BLOCK 0 STREAMS {w} >", "XADD {w} 1 f v")
	serve("the end of a group for which many wait", "XREADGROUP GROUP g c BLOCK 0 STREAMS {w} >", "XGROUP DESTROY {w} g")
	serve("the end of all keys", "XREADGROUP GROUP g c BLOCK 0 STREAMS {w} >", "FLUSHALL")
	serve("an entry that many who wait have seen", "XREAD BLOCK 0 STREAMS {w} 9", "XADD {w} 1 f v")
}
