package node

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// These are the random commands of a history, on one kind of value each.

func (h *history) changeString(key string) []string {
	switch h.r.IntN(12) {
	case 0, 1, 2:
		return []string{"APPEND", key, strconv.Itoa(h.r.IntN(1000))}
	case 3:
		return []string{"SETRANGE", key, strconv.Itoa(h.r.IntN(3000)), "written"}
	case 4:
		return []string{"GETDEL", key}
	case 5:
		return []string{"GETEX", key, "PX", h.life()}
	case 6:
		return []string{"BITOP", h.one("OR", "XOR"), key, h.key(), h.key()}
	}
	return []string{"SET", key, strings.Repeat("v", h.r.IntN(1500))}
}

// life is a time to live that ends within the history, or long after it.
func (h *history) life() string { return strconv.Itoa(1 + h.r.IntN(4) + h.r.IntN(2)*3_600_000) }

func (h *history) changeHash(key string) []string {
	switch h.r.IntN(16) {
	case 0, 1, 2:
		return h.elementsFor("HDEL", key)
	case 3:
		return []string{"HINCRBY", key, "counter", "7"}
	case 4:
		return []string{"HPEXPIRE", key, h.life(), "FIELDS", "2", h.element(), h.element()}
	case 5:
		return []string{"HGETDEL", key, "FIELDS", "3", h.element(), h.element(), h.element()}
	case 6:
		return []string{"HGETEX", key, "PX", h.life(), "FIELDS", "2", h.element(), h.element()}
	case 7:
		return []string{"HGETEX", key, "PERSIST", "FIELDS", "2", h.element(), h.element()}
	case 8:
		return []string{"HSETEX", key, h.one("FNX", "FXX"), "PX", h.life(), "FIELDS", "2", h.element(), h.value(), h.element(), "2"}
	case 9:
		return []string{"HSETEX", key, "KEEPTTL", "FIELDS", "1", h.element(), h.value()}
	case 10:
		return []string{"HPERSIST", key, "FIELDS", "2", h.element(), h.element()}
	case 11:
		return []string{"HINCRBYFLOAT", key, "float", "0.5"}
	}
	return h.several([]string{"HSET", key}, func() []string { return []string{h.element(), h.value()} })
}

func (h *history) changeSet(key string) []string {
	switch h.r.IntN(12) {
	case 0, 1, 2:
		return h.elementsFor("SREM", key)
	case 3:
		return []string{"SPOP", key, strconv.Itoa(1 + h.r.IntN(20))}
	case 4:
		return []string{"SMOVE", key, h.key(), h.element()}
	case 5:
		return []string{h.one("SUNIONSTORE", "SINTERSTORE", "SDIFFSTORE"), key, h.key(), h.key()}
	}
	return h.elementsFor("SADD", key)
}

func (h *history) changeSortedSet(key string) []string {
	low := h.r.IntN(1000)
	scores := []string{strconv.Itoa(low), strconv.Itoa(low + h.r.IntN(50))}
	switch h.r.IntN(14) {
	case 0, 1:
		return h.elementsFor("ZREM", key)
	case 2:
		return []string{"ZINCRBY", key, "1.5", h.element()}
	case 3:
		return []string{h.one("ZPOPMIN", "ZPOPMAX"), key, strconv.Itoa(1 + h.r.IntN(10))}
	case 4:
		return []string{"ZREMRANGEBYRANK", key, "0", strconv.Itoa(h.r.IntN(20))}
	case 5:
		return []string{"ZREMRANGEBYSCORE", key, scores[0], scores[1]}
	case 6:
		return []string{"ZRANGESTORE", key, h.key(), "-inf", scores[1], "BYSCORE"}
	case 7:
		return []string{h.one("ZUNIONSTORE", "ZINTERSTORE"), key, "2", h.key(), h.key(), "WEIGHTS", "2", "0.5"}
	case 8:
		return []string{"ZMPOP", "2", key, h.key(), h.one("MIN", "MAX"), "COUNT", strconv.Itoa(1 + h.r.IntN(10))}
	case 9:
		return []string{"ZADD", key, h.one("GT", "LT", "XX"), "CH", scores[0], h.element(), scores[1], h.element()}
	}
	return h.several([]string{"ZADD", key}, func() []string { return []string{strconv.Itoa(h.r.IntN(1000)), h.element()} })
}

func (h *history) changeGeo(key string) []string {
	place := func() []string { return []string{fmt.Sprint(h.r.IntN(180)), fmt.Sprint(h.r.IntN(80))} }
	switch h.r.IntN(8) {
	case 0:
		return h.elementsFor("ZREM", key)
	case 1:
		return append(append([]string{"GEOSEARCHSTORE", key, h.key(), "FROMLONLAT"}, place()...), "BYRADIUS", "4000", "km")
	}
	return h.several([]string{"GEOADD", key}, func() []string { return append(place(), h.element()) })
}

func (h *history) changeList(key string) []string {
	switch h.r.IntN(16) {
	case 0, 1, 2:
		return []string{h.one("LPOP", "RPOP"), key, strconv.Itoa(1 + h.r.IntN(20))}
	case 3:
		return []string{"LSET", key, strconv.Itoa(h.r.IntN(20) - 10), h.value()}
	case 4:
		return []string{"LINSERT", key, h.one("BEFORE", "AFTER"), h.element(), h.element()}
	case 5:
		return []string{"LREM", key, strconv.Itoa(h.r.IntN(5) - 2), h.element()}
	case 6:
		return []string{"LTRIM", key, strconv.Itoa(h.r.IntN(10)), strconv.Itoa(-1 - h.r.IntN(10))}
	case 7:
		return []string{"LMOVE", key, h.key(), h.one("LEFT", "RIGHT"), h.one("LEFT", "RIGHT")}
	case 8:
		return []string{"RPOPLPUSH", key, h.key()}
	case 9:
		return []string{"LMPOP", "2", key, h.key(), h.one("LEFT", "RIGHT"), "COUNT", strconv.Itoa(1 + h.r.IntN(10))}
	case 10:
		return []string{h.one("LPUSHX", "RPUSHX"), key, h.element(), h.value()}
	case 11:
		return []string{"SORT", h.key(), "ALPHA", "STORE", key}
	}
	return h.several([]string{h.one("RPUSH", "LPUSH"), key}, func() []string {
		if h.r.IntN(10) == 0 {
			return []string{h.value()}
		}
		return []string{h.element()}
	})
}

// restored is a RESTORE of what a key holds now.
func (h *history) restored() []string {
	h.owner.send("DUMP " + h.key())
	dump, found := resp.DecodeBulk(h.owner.read())
	if !found {
		return []string{"DEL", h.key()}
	}
	return []string{"RESTORE", h.key(), h.one("0", h.life()), string(dump), "REPLACE"}
}

// entryID is the ID of an entry of some stream, perhaps of this one.
func (h *history) entryID() string { return strconv.Itoa(1+h.r.IntN(h.entries+1)) + "-1" }

func (h *history) changeStream(key string) []string {
	group, consumer := h.one("g1", "g2"), h.one("c1", "c2", "c3")
	ids := func(args ...string) []string {
		return h.several(args, func() []string { return []string{h.entryID()} })
	}
	switch h.r.IntN(40) {
	case 0, 1:
		return []string{"XGROUP", "CREATE", key, group, h.one("0", "$"), "MKSTREAM"}
	case 2:
		return []string{"XGROUP", h.one("DESTROY", "CREATECONSUMER", "DELCONSUMER"), key, group, consumer}[:4+h.r.IntN(2)]
	case 3:
		return []string{"XGROUP", "SETID", key, group, h.entryID(), "ENTRIESREAD", "2"}
	case 4, 5, 6, 7, 8:
		return []string{"XREADGROUP", "GROUP", group, consumer, "COUNT", strconv.Itoa(1 + h.r.IntN(50)), "STREAMS", key, h.one(">", "0")}
	case 9, 10:
		return ids("XACK", key, group)
	case 11:
		return ids("XCLAIM", key, group, consumer, "0")
	case 12:
		return []string{"XAUTOCLAIM", key, group, consumer, "0", h.entryID(), "COUNT", "20"}
	case 13, 14, 15:
		return ids("XDEL", key)
	case 16:
		return []string{"XTRIM", key, "MAXLEN", h.one("=", "~"), strconv.Itoa(h.r.IntN(h.elements + 1))}
	case 17:
		return []string{"XTRIM", key, "MINID", h.one("=", "~"), h.entryID(), "DELREF"}
	case 18:
		return []string{"XSETID", key, strconv.Itoa(h.entries) + "-9", "ENTRIESADDED", "5000", "MAXDELETEDID", "0-1"}
	case 19:
		return []string{"XDELEX", key, "ACKED", "IDS", "2", h.entryID(), h.entryID()}
	}
	h.entries++
	args := []string{"XADD", key}
	if h.r.IntN(3) == 0 {
		args = append(args, "MAXLEN", strconv.Itoa(h.elements))
	}
	return h.several(append(args, strconv.Itoa(h.entries)+"-1"), func() []string { return []string{h.one("a", "b", h.element()), h.value()} })
}

// readStream is what a stream has beside its entries, but for figures of its form.
func (h *history) readStream(c *client, key string) string {
	c.send("XINFO STREAM " + key + " FULL COUNT 0")
	lines := strings.Split(string(c.read()), "\r\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "radix-tree-") {
			lines[i+1] = ""
		}
	}
	if strings.HasPrefix(lines[0], "-ERR no such key") {
		return ""
	}
	return strings.Join(lines, " ")
}
