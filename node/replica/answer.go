package replica

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// A receiver answers every batch with the number of the last batch that it has applied:
//
//	:seq                          or, if it refuses partitions:
//	*2 :seq $partitions           two bytes each, little endian

// AppendAnswer appends the answer to a batch to dst.
func AppendAnswer(dst []byte, seq uint64, refused []uint16) []byte {
	if len(refused) == 0 {
		return resp.AppendInt(dst, int64(seq))
	}
	dst = resp.AppendInt(resp.AppendArray(dst, 2), int64(seq))
	dst = resp.AppendBulkHeader(dst, 2*len(refused))
	for _, p := range refused {
		dst = binary.LittleEndian.AppendUint16(dst, p)
	}
	return append(dst, "\r\n"...)
}

// ParseAnswer parses the answer to a batch, which is one whole reply, and appends the refused
// partitions to dst. For an error reply it returns an error.
func ParseAnswer(reply []byte, dst []uint16) (seq uint64, refused []uint16, err error) {
	line := reply
	if resp.IsError(reply) {
		return 0, dst, fmt.Errorf("%q", strings.TrimSpace(string(reply[1:])))
	}
	if list, ok := strings.CutPrefix(string(reply), "*2\r\n"); ok {
		number, bulk, _ := strings.Cut(list, "\r\n")
		partitions, ok := resp.DecodeBulk([]byte(bulk))
		if !ok || len(partitions)%2 != 0 {
			return 0, dst, fmt.Errorf("%q, want a number and partitions", reply)
		}
		for ; len(partitions) > 0; partitions = partitions[2:] {
			dst = append(dst, binary.LittleEndian.Uint16(partitions))
		}
		line = []byte(number)
	}
	number, ok := strings.CutPrefix(strings.TrimSpace(string(line)), ":")
	if ok {
		seq, err = strconv.ParseUint(number, 10, 64)
	}
	if !ok || err != nil {
		return 0, dst, fmt.Errorf("%q, want a number", reply)
	}
	return seq, dst, nil
}
