package node

import (
	"slices"
	"strings"
	"testing"
)

// TestPackedArgs: arguments of all lengths come back as they were, and so do the keys among them, which may look like
// others of the arguments.
func TestPackedArgs(t *testing.T) {
	long := strings.Repeat("x", 1<<16-1)
	for _, args := range [][]string{
		{"BLPOP"},
		{"BLPOP", "", "0"},
		{"BLMPOP", "0", "3", "3", "0", "3", "left"},
		{"BLPOP", long[:254], long[:255], long[:256], long, ""},
	} {
		var bytes [][]byte
		for _, arg := range args {
			bytes = append(bytes, []byte(arg))
		}
		packed := packArgs(bytes)
		if len(packed) != packedSize(bytes) {
			t.Errorf("%d bytes are packed in %d", packedSize(bytes), len(packed))
		}
		var got []string
		for _, arg := range unpackArgs(nil, []byte(packed)) {
			got = append(got, string(arg))
		}
		if !slices.Equal(got, args) {
			t.Errorf("%.40q come back as %.40q", args, got)
		}
		for from := range args {
			var keys []string
			for _, part := range packed.appendKeys(nil, bytes[from:]) {
				keys = append(keys, string(packed[part.At:][:part.Len]))
			}
			if !slices.Equal(keys, args[from:]) {
				t.Errorf("the keys of %.40q from %d on are %.40q", args, from, keys)
			}
		}
	}
}
