// Package conversation reads and replays golden conversations: text files in which requests stand
// with the replies that they must get, and prose between them. Tests of several packages hold the
// same files with a node, with a proxy over three nodes, and with a real redis-server, which proves
// what the files say.
//
// There are two notations. Replies as redis-cli shows them, for commands on keys (Play):
//
//	> SET k v          a request; the lines below, up to an empty line or the next request, are its reply
//	OK
//	sorted> KEYS *     elements of the reply in any order
//	until> GET k       asked again until the reply is the expected one
//	quiet> HELLO 3     any reply
//	raw> "*1\r\n$x"    bytes in Go's quoting, and the replies to them, a line each; "(closed)" is the end of the connection
//	wire> GET k        a request whose reply is shown as bytes in Go's quoting
//	other> PUBLISH c m a request of a second connection
//	next>              what else has come to the first one; next-wire> shows it as bytes
//
// Where Redis answers otherwise, all three of these are the reply; several lines of dunlin: or
// redis: are lines of one reply:
//
//	dunlin: (error) CROSSSLOT Keys in request don't hash to the same slot
//	redis: (integer) 1
//	because: parts on several nodes cannot be made all or nothing
//
// From a line "@ours reason" on, the file is not held with Redis: what Redis has in later versions
// only. A line "@zero reason" says that the file is held in database 0 only, and "@spread reason"
// that it is not held in a pinned one. There, the reply of redis: is the right one where that of
// dunlin: is CROSSSLOT.
//
// And replies as they pass the wire, line by line, for what belongs to a connection (Script):
//
//	--- title     a new connection
//	> WORD "w 2"  a request; quoted words as in Go
//	< line        one line of the reply, up to CR LF, exactly; a line feed is shown as \n
//	<~ regexp     the same, matched as a whole
//	<*            whatever else the reply has
//	= closed      the server has closed the connection
//	@password p   the file's servers want this password
//	@cluster      the file's real server is a node of a Redis Cluster
//	@ours reason  the conversation that follows is not held with the real one
//
// Everything else is prose.
package conversation
