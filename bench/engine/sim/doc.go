// Package sim computes the hit ratios of cache policies: it has traces of reads, and policies that
// know only keys and bytes and have no bookkeeping to pay for. It is pure: the same numbers give
// the same traces and the same ratios.
//
// # Terms
//
//   - trace: keys, by number, in the order in which a client reads them. A read that misses is
//     followed by a write of the key, as look-aside caches are used, so each policy's Read also
//     stores.
//   - cost: the bytes that a key takes; room: the bytes that a cache has.
//   - warm-up: the first reads of a trace, which fill the cache and are not counted.
//
// # Rejected
//
// Recorded traces (Twitter's, say) are too large to come with the project. The workloads here keep
// one property each, so that a bad ratio has one reason.
package sim
