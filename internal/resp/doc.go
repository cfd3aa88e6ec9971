// Package resp reads and writes the Redis serialization protocol, versions 2
// and 3, in buffers that belong to its callers.
//
// # Terms
//
//   - A request is what a client sends: an array of bulk strings, or an inline
//     line of words. An argument is one of its strings.
//   - A reply is what a server sends: one value of any RESP type. An aggregate is
//     a reply that contains others (array, set, map, push, attribute).
//   - A header is the line that begins a request, an argument or a reply: a type
//     byte, a number or text, CR, LF. A bulk is a header with a length and
//     then so many bytes and another CR LF.
//
// # Two readers, one shape
//
// [Parser] finds requests and their arguments. [Scanner] finds only where a
// reply ends, which is all that a proxy needs to pass it on. Both are given the
// bytes that have arrived so far and answer done, need more, or malformed:
//
//	buffer  *3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\nval
//	                                      |   |    |
//	        begins at buf[0]              pos len  Need(): all of the value, CR LF
//
// Invariants of both:
//
//   - They own no input. They keep positions, not slices, so between two calls
//     the buffer may grow or move. Bytes already given must not change.
//   - Everything before pos is finished and never looked at again, and a search
//     for the end of a line goes on where it stopped: the work is linear in the
//     bytes, however small the pieces in which they come. (A short header may be
//     read once more at each call.)
//   - No memory is reserved because of a declared number. The list of arguments
//     grows as arguments arrive; the scanner has a stack of fixed depth.
//   - A large argument need not be gathered: with Limits.LargeBulk a Parser announces it, and the
//     caller can pass its bytes on in pieces.
//   - A list that nobody reads need not be kept: with Limits.Words a Parser checks the arguments of a
//     long request beyond a number, and forgets them.
//   - After Done the next call begins anew at buf[0]; the caller first drops Len bytes. After
//     Malformed only Reset helps: a stream that is out of step is closed, never resynchronised.
//
// # Agreement with Redis
//
// Outcomes and error texts are those of redis-server 7 (a test compares them), with two exceptions.
// First, Redis 7 skips the two bytes after an argument, and the byte after the CR of a header,
// without looking at them. Here they must be CR LF; otherwise the error is "invalid CRLF in
// request", as in current Valkey. A proxy that shares one connection among clients must notice as
// early as possible that a stream is out of step. Second, Redis judges the length of an unfinished
// line by what one read happened to deliver. Here the limit is exact.
//
// A Parser or Scanner belongs to one connection and is not safe for concurrent use.
package resp
