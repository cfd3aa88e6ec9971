package node

import (
	"fmt"

	"github.com/dunlin-cache/dunlin/internal/conversation"
	"github.com/dunlin-cache/dunlin/internal/rdb"
)

// keyspace is a command on whole keys. HyperLogLogs have keys of their own, where nothing writes
// into the middle of them: what Redis makes of the bytes behind a broken one is not to be compared.
func (g *generator) keyspace(k string) string {
	sketch := func() string { return g.pick("{t}h", "{t}i") }
	element := func() string { return fmt.Sprintf("e%d", g.IntN(3000)) }
	switch g.IntN(12) {
	case 0, 1:
		return g.pick("RENAME", "RENAMENX") + " " + k + " " + g.key()
	case 2:
		return "COPY " + k + " " + g.key() + " " + g.some(func() string { return g.pick("REPLACE", "DB 0", "DB x", "DB 99", "what") }, 2)
	case 3:
		return "DUMP " + k
	case 4, 5:
		return "RESTORE " + k + " " + g.pick("0", "0", "0", "-1", "x", g.far()) + " " + g.payload() + " " +
			g.some(func() string {
				return g.pick("REPLACE", "replace", "IDLETIME 5", "FREQ 7", "FREQ 256", "IDLETIME x", "what")
			}, 3)
	case 6:
		return g.pick("OBJECT REFCOUNT {t}h", "OBJECT FREQ {t}h", "OBJECT IDLETIME nothing", "OBJECT ENCODING nothing", "OBJECT what {t}h")
	case 7:
		return "PFCOUNT " + sketch() + " " + g.some(sketch, 2)
	case 8:
		return "PFMERGE " + sketch() + " " + g.some(sketch, 2)
	case 9:
		return g.pick("GET ", "GET ", "DUMP ", "DEL ", "SET {t}i ") + sketch()
	}
	return "PFADD " + sketch() + " " + g.some(element, 200)
}

// payload is one for RESTORE, right or wrong.
func (g *generator) payload() string {
	right := rdb.AppendDump(nil, []byte(g.value()))
	right[len(right)-1-g.IntN(3)] ^= byte(g.IntN(5) / 4)
	return conversation.Quote(right)
}
