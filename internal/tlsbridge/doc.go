// Package tlsbridge speaks TLS for event loops, which handle plain sockets only.
//
// crypto/tls needs a connection that may block. So each TLS connection has two goroutines here.
// They move its bytes to and from one end of a socket pair; the loop has the other end, like any
// socket:
//
//	client ══ TLS ══ tls.Conn ── inbound goroutine ──> socket pair ── conn of a loop
//	                          <── outbound goroutine ──
//
// # Bounds
//
// A direction has a buffer of 16 KiB, the length of a record, and what the system buffers for the
// pair. A goroutine that cannot write does not read: a peer that does not read is slowed as it is
// without TLS, and the loop's own limits close it. This package bounds what the loop cannot see. A
// handshake takes 5 s at most, and the number of concurrent handshakes is limited, in all and for
// each source address; a connection counts until a loop has it. A quarter of the processors compute
// handshakes, and rest between them while loops are strained, so that established connections come
// first (doorway.go). A client that takes nothing of 16 KiB for 10 s is closed; one that continues to
// send after the loop has closed is cut off after another 10 s.
//
// A bridge learns that its client has left by reading. A loop that reads nothing, as in CLIENT PAUSE,
// stops the bridge too when the buffers are full. Then the bridge asks the system every 10 s whether the client
// has finished sending. One that has, and of whom the loop has taken nothing meanwhile, counts as left,
// and its connection ends. Only Linux says so, and only when all that the client has sent has arrived:
// what its own system still keeps is in front of its end, as it is without TLS.
//
// # Trust
//
// The server shows clients its certificate. Clients must show one themselves if there is a CA for
// them. Between members, both sides show a certificate of the cluster's CA. Names in it are not
// compared, because members are known by addresses, which change. Versions before TLS 1.2 are
// refused. Certificates are read again when their files change; open connections stay.
package tlsbridge
