// Package scenarios does to a cluster under load what operators do, and what happens to it, judged
// by clients that know what they wrote:
//
//	go test ./test/scenarios    # each once, in short
//	make scenarios              # in full, twenty times each, with a summary of what it cost
package scenarios
