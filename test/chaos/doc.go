// Package chaos hurts real processes while clients work through proxies and judge every reply.
//
// # Terms
//
//	rig      a cluster under test, with its clients
//	history  what the clients know of one key: which writes a read may show
//	session  one connection, whose replies are judged in order
//	mixer    a client that pipelines all sorts of commands
//	prober   a client that does one command at a time, and measures how long keys are out
//	fault    what happens to a node: it dies, stops, stumbles, leaves
//	absence  a key that is missing: a table must explain it
//
// The tests here do to nodes what machines do. The checker (TestCheck) goes deeper and longer.
// Package scenarios does what operators do, and measures it. Neither package runs beside other
// tests, since they measure: `make test` runs them alone.
package chaos
