// Package lobby holds whoever has connected and has not proved who they are yet. It bounds their
// number, their number from one source address, and the time that they have.
//
//	accept ──Enter──> lobby ──Leave──> proved, or gone
//	                    └──turned out──> closed
//
// Terms.
//   - guest: a connection that has to prove something. The package knows no sockets: a guest brings
//     a function that turns it out.
//   - source: an IPv4 address, or an IPv6 network of 64 bits, because whoever has one address of
//     such a network usually has all.
//
// A newcomer is never refused. If its source already has its share of guests, the oldest guest of
// that source is turned out; if the lobby is full, the oldest of all. An honest client proves itself
// within a few round trips, so it is rarely the oldest; somebody who opens connections and says
// nothing only displaces their own.
package lobby
