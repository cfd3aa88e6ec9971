package about

import "github.com/dunlin-cache/dunlin/internal/resp"

const memoryAdvice = "Nothing to advise: values, index and connection buffers count towards maxmemory, and sparse pages " +
	"are emptied and used again. INFO memory has the figures.\n"

// memoryDoctor answers MEMORY DOCTOR. The engine and the loops bound the problems that Redis's
// doctor looks for: fragmentation and large buffers.
func memoryDoctor(dst []byte, v resp.Version, _ [][]byte) []byte {
	return resp.AppendVerbatim(dst, v, "txt", memoryAdvice)
}

// memoryMallocStats answers MEMORY MALLOC-STATS like a Redis without jemalloc.
func memoryMallocStats(dst []byte, _ resp.Version, _ [][]byte) []byte {
	return resp.AppendBulkString(dst, "Stats not supported for the current allocator")
}

// memoryPurge answers MEMORY PURGE: unused memory returns to the system on its own.
func memoryPurge(dst []byte, _ resp.Version, _ [][]byte) []byte { return resp.AppendOK(dst) }
