package figures

import "github.com/dunlin-cache/dunlin/internal/resp"

// AppendMemoryStats encodes the reply to MEMORY STATS, with Redis's names in
// its order.
func AppendMemoryStats(dst []byte, v resp.Version, c *Counters) []byte {
	perKey := int64(0)
	if c.Keys > 0 {
		perKey = (c.UsedMemory - c.Startup) / c.Keys
	}
	numbers := func(pairs ...any) {
		for i := 0; i < len(pairs); i += 2 {
			dst = resp.AppendBulkString(dst, pairs[i].(string))
			switch n := pairs[i+1].(type) {
			case int64:
				dst = resp.AppendInt(dst, n)
			case int:
				dst = resp.AppendInt(dst, int64(n))
			case float64:
				dst = resp.AppendDouble(dst, v, n)
			}
		}
	}
	dst = resp.AppendMap(dst, v, 27)
	numbers("peak.allocated", c.PeakMemory, "total.allocated", c.UsedMemory, "startup.allocated", c.Startup,
		"replication.backlog", 0, "clients.slaves", 0, "clients.normal", c.ClientBytes, "cluster.links", 0,
		"aof.buffer", 0, "lua.caches", c.ScriptBytes, "functions.caches", c.FunctionBytes, "overhead.total", c.Overhead,
		"keys.count", c.Keys, "keys.bytes-per-key", perKey, "dataset.bytes", c.Dataset,
		"dataset.percentage", 100*share(c.Dataset, c.UsedMemory-c.Startup),
		"peak.percentage", 100*share(c.UsedMemory, c.PeakMemory),
		"allocator.allocated", c.UsedMemory, "allocator.active", c.UsedMemory, "allocator.resident", c.RSS,
		"allocator-fragmentation.ratio", 1.0, "allocator-fragmentation.bytes", 0,
		"allocator-rss.ratio", share(c.RSS, c.UsedMemory), "allocator-rss.bytes", c.RSS-c.UsedMemory,
		"rss-overhead.ratio", 1.0, "rss-overhead.bytes", 0,
		"fragmentation", share(c.Fragmented(), c.UsedMemory), "fragmentation.bytes", c.Fragmented()-c.UsedMemory)
	return dst
}

func share(part, whole int64) float64 {
	if whole <= 0 {
		return 0
	}
	return float64(part) / float64(whole)
}
