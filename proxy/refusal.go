package proxy

import "bytes"

// refusalKind tells why a node did not execute a command.
type refusalKind uint8

const (
	notRefused   refusalKind = iota
	refusedMoved             // -MOVED: another node owns the partition
	refusedWait              // -DUNLINWAIT, -CLUSTERDOWN: the node will know more soon
)

var (
	movedPrefix       = []byte("-MOVED ")
	waitPrefix        = []byte("-DUNLINWAIT")
	clusterDownPrefix = []byte("-CLUSTERDOWN")
)

func classify(reply []byte) refusalKind {
	switch {
	case bytes.HasPrefix(reply, movedPrefix):
		return refusedMoved
	case bytes.HasPrefix(reply, waitPrefix), bytes.HasPrefix(reply, clusterDownPrefix):
		return refusedWait
	}
	return notRefused
}

// movedAddr is the address in "-MOVED slot host:port\r\n".
func movedAddr(reply []byte) string {
	fields := bytes.Fields(reply)
	if len(fields) != 3 {
		return ""
	}
	return string(fields[2])
}
