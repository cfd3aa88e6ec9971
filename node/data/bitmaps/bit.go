package bitmaps

import (
	"github.com/dunlin-cache/dunlin/internal/bitstring"
	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// scanFrom is how many bytes a command reads on the loop, under the shard's lock: about 0.05 ms. A
// goroutine reads longer values, which it has pinned.
const scanFrom = 256 << 10

// setBit: SETBIT key offset value
func setBit(r *exec.Request) {
	at, ok := bitOffset(r.Args[2], 0)
	if !ok {
		r.Fail(errBitOffset)
		return
	}
	bit, ok := resp.ParseInt(r.Args[3])
	if !ok || bit < 0 || bit > 1 {
		r.Fail(errBit)
		return
	}
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	if value, grown, ok := bitsToWrite(r, t, int(at/8)+1); ok {
		old := bitstring.Field(value, at, 1)
		r.ReplyInt(int64(old))
		bitstring.SetField(value, at, 1, uint64(bit))
		if grown || old != uint64(bit) {
			r.Notify(keyevent.String, "setbit", r.Args[1])
		}
	}
}

// bitsToWrite returns the value of the command's key to be written to, extended to that many bytes
// if it was shorter, as grown says. ok is false if the command is answered, or will run again.
func bitsToWrite(r *exec.Request, t engine.Txn, bytes int) (value []byte, grown, ok bool) {
	item, found, ok := r.FindString(t, r.Args[1])
	if !ok {
		return nil, false, false
	}
	grown = true
	if found {
		grown = bytes > len(item.Value())
		bytes = max(bytes, len(item.Value()))
	}
	if !r.LengthOK(bytes, 0) {
		return nil, false, false
	}
	value, _, ok = r.Resize(t, item, found, exec.Change{Length: bytes, Offset: bytes})
	return value, grown, ok
}

// getBit: GETBIT key offset
func getBit(r *exec.Request) {
	at, ok := bitOffset(r.Args[2], 0)
	if !ok {
		r.Fail(errBitOffset)
		return
	}
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	item, found, ok := r.ReadString(t, r.Args[1])
	switch {
	case !ok:
	case found:
		r.ReplyInt(int64(bitstring.Field(item.Value(), at, 1)))
	default:
		r.ReplyInt(0)
	}
}

// bitRange reads the arguments start, end and unit, from the i-th on and as far as they are there,
// for a value of that many bytes. The result is the bits [from, to), which is empty unless from <
// to. ok is false if bitRange has answered an error.
func bitRange(r *exec.Request, i int, bytes int64) (from, to int64, ok bool) {
	// Of several errors, BITPOS and BITCOUNT answer different ones, as in Redis.
	count := r.Cmd.ID == command.BitCount
	end, unit := int64(-1), int64(8)
	start, ok := r.IntArg(i)
	if ok && !count {
		unit, ok = bitUnit(r, i+2)
	}
	if ok && len(r.Args) > i+1 {
		end, ok = r.IntArg(i + 1)
	}
	if ok && count {
		if end < start && start < 0 {
			return 0, 0, true // both from the end: even if that is ahead of the value
		}
		unit, ok = bitUnit(r, i+2)
	}
	if !ok {
		return 0, 0, false
	}
	length := bytes * 8 / unit
	if start < 0 {
		start = max(start+length, 0)
	}
	if end < 0 {
		end = max(end+length, 0)
	}
	return min(start, length) * unit, (min(end, length-1) + 1) * unit, true
}

// bitUnit reads the unit of a range, if argument i is there, and returns its length in bits.
func bitUnit(r *exec.Request, i int) (bits int64, ok bool) {
	switch {
	case len(r.Args) <= i, exec.Is(r.Args[i], "BYTE"):
		return 8, true
	case exec.Is(r.Args[i], "BIT"):
		return 1, true
	}
	r.Fail(exec.ErrSyntax)
	return 0, false
}
