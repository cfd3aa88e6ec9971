// Package harness runs real processes for tests: the binary is built once per test run, and every
// member is a `dunlin node` or `dunlin proxy` on ports of its own.
//
//	c := harness.StartCluster(t, 3, 1) // three nodes n1 n2 n3, a proxy p1, all ready
//	c.Proxy(0).Addr                    // where clients connect
//	c.Node(1).Kill()                   // SIGKILL; Stop and Cont are SIGSTOP and SIGCONT
//	c.Node(1).Start()                  // the same id, ports and flags again
//	c.Converge(3 * time.Second)        // all running members show one epoch
//
// # Terms
//
//	wire     a connection to a server that fails the test when a reply is not as expected
//	link     a connection for goroutines: it returns errors
//	relay    stands before a node and delays, cuts or loses what passes
//	network  a network namespace for each member, so that any two can be cut apart
//	doer     a client library, as a function from commands to replies
//
// # Invariants
//
//   - Everything ends with the test, also when the test process is killed.
//   - A test that fails shows the end of each member's log.
//   - A data race or a panic that a member logs fails the test.
package harness
