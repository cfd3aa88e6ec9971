package member

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// Filled says which databases have keys at a node, in the partitions that the node owned in an epoch.
type Filled struct {
	Epoch     uint64
	Databases ring.Databases
}

// AskFilled asks the node whose data port is addr which databases have keys there. They are closed by the settings
// document with that hash, and the node says so only once it executes no command on them any more.
func AskFilled(
	ctx context.Context, dial Dialer, addr string, secret []byte, hash [32]byte, databases ring.Databases,
) (f Filled, err error) {
	reply, err := ask(ctx, dial, addr, secret, VerbEmpty, string(hash[:]), databases.String())
	if err != nil {
		return f, err
	}
	text, _ := resp.DecodeBulk(reply)
	epoch, filled, _ := strings.Cut(string(text), " ")
	if f.Epoch, err = strconv.ParseUint(epoch, 10, 64); err == nil {
		f.Databases, err = ring.ParseDatabases(filled)
	}
	if err != nil {
		return f, fmt.Errorf("cannot read which databases have keys at %s: %w", addr, err)
	}
	return f, nil
}

// AppendFilled appends the reply to EMPTY.
func AppendFilled(dst []byte, f Filled) []byte {
	return resp.AppendBulkString(dst, strconv.FormatUint(f.Epoch, 10)+" "+f.Databases.String())
}

// ParseEmpty reads the arguments of EMPTY.
func ParseEmpty(args [][]byte) (hash [32]byte, databases ring.Databases, ok bool) {
	databases, err := ring.ParseDatabases(string(args[1]))
	ok = copy(hash[:], args[0]) == len(args[0]) && len(args[0]) == len(hash) && err == nil
	return hash, databases, ok
}
