// Package tracking has what CLIENT TRACKING needs on one loop, of a node or of a proxy: which clients have a
// copy of which key, and which clients follow which prefixes. It has no socket and starts no goroutine.
//
// # Terms
//
//   - copy: what a client may have kept of a reply, for one key.
//   - mark: what the owner of a key keeps so that it tells of the next change (node/engine/marks.go). The owner
//     marks a key for a watcher: a loop of its own, or a pipe. It knows no clients.
//   - gone: what the watcher is told: the hash of a key that has changed. Flush: everything may have.
//   - invalidation: what the client is told.
//
// # Order
//
//	add the copy ──▶ mark the key ──▶ read it ──▶ reply ──▶ (the key changes) gone ──▶ invalidation
//
// A copy is added before its key is marked, and the key is marked before it is read. So whoever changes the
// key behind the read finds the mark, and what that tells finds the copy. A change between mark and read also
// tells: the client gets the reply and then an invalidation that it did not need.
//
// The caller has the invalidation follow on the reply that it revokes (Sink). What was told removes the copy:
// a client that reads again adds it again, so each copy is told once. What a client has changed itself, and wants no
// word of, leaves its copy as it is.
//
// # Invariants
//
//   - A Table and its Clients belong to one loop. A Directory does not.
//   - A copy is told to every client that may have it. It may be told too often: hashes are shared, what does not
//     fit is dropped as if it had changed, and a flush tells everybody.
package tracking
