package differential

import (
	"slices"
	"strconv"
	"strings"

	"github.com/dunlin-cache/dunlin/internal/command"
)

// sketchPrefix begins the keys of HyperLogLogs, all in one slot. Their values are whole
// HyperLogLogs, or strings that clearly are not. Redis promises nothing about broken ones, or about
// their state after an error; package node tests those.
const sketchPrefix = "{h}"

// keepsSketches reports whether a request cannot break a HyperLogLog, and expects one only at keys
// with sketchPrefix.
func keepsSketches(name string, args [][]byte) bool {
	keys, _ := command.Lookup(args[0]).AppendKeys(nil, args)
	own := 0
	for _, i := range keys {
		if strings.HasPrefix(string(args[i]), sketchPrefix) {
			own++
		}
	}
	switch name {
	case "pfadd", "pfcount", "pfmerge", "copy", "rename", "renamenx":
		return own == len(keys) || own == 0 && name[0] != 'p'
	case "set", "setnx", "getset":
		return own == 0 || len(args) < 3 || !strings.HasPrefix(string(args[2]), "HYLL")
	}
	return own == 0 || slices.Contains([]string{"get", "getdel", "strlen", "type", "exists", "touch", "del", "unlink", "mget"}, name)
}

// sketches returns a command on HyperLogLogs.
func (m mutator) sketches() (args []string) {
	key := func() string { return sketchPrefix + m.pick("1", "2", "3", "4") }
	switch m.IntN(12) {
	case 0, 1, 2, 3:
		return append([]string{m.pick("PFADD", "pfadd"), key()}, m.values()...)
	case 4: // sometimes far more than the sparse form can hold
		args = []string{"PFADD", key()}
		for n := m.IntN(600); n > 0; n-- {
			args = append(args, strconv.Itoa(m.IntN(100_000)))
		}
		return args
	case 5, 6:
		args = []string{"PFCOUNT"}
	case 7, 8:
		args = []string{"PFMERGE", key()}
	case 9:
		return []string{m.pick("COPY", "RENAME", "RENAMENX"), key(), key()}
	case 10:
		return []string{m.pick("DEL", "STRLEN", "TYPE", "GETDEL"), key()}
	case 11:
		return []string{m.pick("GET", "GET", "GET", "SET", "SETNX"), key(), m.value()}[:2+m.IntN(2)]
	}
	for range 1 + m.IntN(3) {
		args = append(args, key())
	}
	return args
}
