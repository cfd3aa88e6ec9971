// Package harness runs real processes for tests. It builds the binary once per test run, and starts
// every member as a `dunlin node` or `dunlin proxy` on ports of its own.
//
//	c := harness.StartCluster(t, 3, 1) // three nodes n1 n2 n3, a proxy p1, all ready
//	c.Proxy(0).Addr                    // where clients connect
//	c.Node(1).Kill()                   // SIGKILL; Stop and Cont are SIGSTOP and SIGCONT
//	c.Node(1).Start()                  // the same id, ports and flags again
//	c.Converge(3 * time.Second)        // all running members show one epoch
//
// # Terms
//
//	wire     a raw connection for the test's goroutine: it fails the test
//	link     a raw connection for other goroutines: it returns errors
//	relay    passes on a node's connections, and delays or cuts them
//	network  a network namespace for each member, so that any two can be cut apart
//	doer     a client library, wrapped in a function from commands to replies
//
// # Invariants
//
//   - Everything ends with the test, even if the test process is killed.
//   - A test that fails shows the end of each member's log.
//   - A data race or a panic that a member logs fails the test.
package harness
