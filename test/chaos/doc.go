// Package chaos injects faults into real processes while clients work through proxies and judge
// every reply.
//
// # Terms
//
//	rig         a cluster under test, with its clients
//	history     what the clients know of one key: which writes a read may show
//	collection  a hash, set or sorted set: each element has a history of its own
//	queue       a list that one session fills and drains
//	feed        a list that some sessions fill, and others empty by blocking commands
//	line        clients that wait for one key, one behind the other
//	channel     what some sessions publish and others hear, and notifications of keys
//	cache       a session that keeps copies of the mixers' keys, by CLIENT TRACKING
//	bundle      keys of all types that are written by transactions
//	transit     tokens that are moved between keys, each in one of them
//	database    keys with "@1" in their names are in database 1, all others in database 0
//	session     one connection, whose replies are judged in order
//	mixer       a client that pipelines all sorts of commands
//	prober      a client that does one command at a time, and measures how long keys are out
//	fault       what a test does to a node: kill, freeze, slow down, let leave
//	absence     a key that is missing: a table must explain it
//
// The tests here simulate failures of machines. The checker (TestCheck) uses deeper pipelines and
// more kinds of commands, and runs longer. Package scenarios does what operators do, and measures
// it. Both packages measure: `make test` runs scenarios alone, and those tests here that a busy
// machine would disturb.
package chaos
