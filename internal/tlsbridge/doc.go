// Package tlsbridge speaks TLS for event loops, which see plain sockets only.
//
// crypto/tls wants a connection that may block. So a TLS connection has two goroutines of its own
// here, which move its bytes to and from one end of a socket pair; the loop has the other end, as
// it would have any socket:
//
//	client ══ TLS ══ tls.Conn ── inbound goroutine ──> socket pair ── conn of a loop
//	                          <── outbound goroutine ──
//
// # Bounds
//
// A direction has a buffer of 16 KiB, a record's worth, and what the system keeps of the pair. A
// goroutine that cannot write does not read: whoever does not read is slowed as without TLS, and
// the loop's own limits close it. What the loop cannot see is bounded here: a handshake takes 5 s
// at most, and so many run at a time; a client that takes nothing of 16 KiB for 10 s is given up;
// one that goes on sending after the loop has closed is cut off after another 10 s.
//
// # Trust
//
// Clients are served with a certificate, and have to show one themselves if there is a CA for that.
// Between members both sides show a certificate of the cluster's CA; names in it are not compared,
// because members are known by addresses that change. Versions before TLS 1.2 are refused.
// Certificates are read again when their files change; connections stay.
package tlsbridge
