// Package load sends commands to a server that speaks RESP or memcached's text protocol, and
// measures how many it answers and how long each one takes.
//
// # Terms
//
// A client is one connection. A batch is what a client sends at once: as many commands as its
// pipeline is deep. In a closed loop a client sends its next batch when the last one is answered,
// so a slow server is asked less. In an open loop batches have intended times, whatever the server
// does:
//
//	interval = pipeline / rate       client 0    client 1    client 2    client 0
//	batch number                     0           1           2           3
//	intended time                    0           interval    2 interval  3 interval
//
// Latency is counted from the beginning of the batch in a closed loop, and from its intended time
// in an open one. So it includes the time that a command waits because the server, or this program,
// is busy with earlier ones.
//
// # Shape
//
// Each worker is a locked thread with an epoll set and its share of the clients; workers share
// nothing until they end. Requests are copied from a template with the digits of the key changed,
// and replies are read only as far as necessary to find their end, a miss or an error: the
// generator should take little of the machine that it shares with the server. The sequence of keys
// is the same in every run.
//
// # Invariants
//
//   - An error reply, a value of a wrong length, a reply too many or a closed connection ends the
//     run with an error: no figure is taken from a server that does not do its work. Keys that are
//     not there are counted.
//   - Everything ends: connecting, a run (its duration), and waiting for the last replies
//     (drainLimit).
//   - A client has at most maxOpen commands, or one batch, outstanding. Further batches that are
//     due wait, and are still counted from their intended time.
package load
