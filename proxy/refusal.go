package proxy

import (
	"bytes"
	"strconv"

	"github.com/dunlin-cache/dunlin/ring"
)

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

// movedTo is what "-MOVED slot host:port\r\n" says; addr is empty if it says nothing that can be followed.
func movedTo(reply []byte) (partition uint16, addr string) {
	fields := bytes.Fields(reply)
	if len(fields) != 3 {
		return 0, ""
	}
	slot, err := strconv.ParseUint(string(fields[1]), 10, 16)
	if err != nil || slot >= ring.Slots {
		return 0, ""
	}
	return ring.Partition(uint16(slot)), string(fields[2])
}

// waitEpoch is the epoch in "-DUNLINWAIT epoch\r\n"; 0 if there is none.
func waitEpoch(why refusalKind, reply []byte) uint64 {
	fields := bytes.Fields(reply)
	if why != refusedWait || len(fields) != 2 {
		return 0
	}
	n, err := strconv.ParseUint(string(fields[1]), 10, 64)
	if err != nil {
		return 0
	}
	return n
}
