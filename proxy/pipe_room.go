package proxy

import "sync/atomic"

// pipeRoom is the memory for the buffers of all pipes of a proxy, on all loops.
type pipeRoom struct {
	most int64 // bytes
	used atomic.Int64
}

// Free reports whether n more bytes are left.
func (r *pipeRoom) Free(n int) bool { return r.used.Load()+int64(n) <= r.most }

// Ample reports whether less than half is used.
func (r *pipeRoom) Ample() bool { return r.used.Load() < r.most/2 }

// Use counts n more bytes.
func (r *pipeRoom) Use(n int) { r.used.Add(int64(n)) }
