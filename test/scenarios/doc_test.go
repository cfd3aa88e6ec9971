// Package scenarios tests a cluster under load in the operations and failures of production.
// Clients that know what they wrote judge every reply:
//
//	go test ./test/scenarios    # each once, in the short form
//	make scenarios              # in full, twenty times each, with a summary of the figures
//	make stock STOCK=2048       # one round on a cluster full of collections, as far as it gets in some minutes
package scenarios
