package cluster

import (
	"fmt"
	"slices"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/conversation"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// copyByScan copies big collections by what their scans find, from one key to the next.
func copyByScan(t *testing.T, addr string) {
	harness.AwaitLevel(t, addr)
	w := harness.DialWire(t, addr)
	const elements, atOnce = 40_000, 1000
	for _, x := range []struct {
		add, scan, length string
		words             int // of an element
	}{{"HSET", "HSCAN", "HLEN", 2}, {"SADD", "SSCAN", "SCARD", 1}, {"ZADD", "ZSCAN", "ZCARD", 2}} {
		add := func(key string, words [][]byte) {
			if x.add == "ZADD" { // whose pairs are turned round
				for pair := range slices.Chunk(words, 2) {
					slices.Reverse(pair)
				}
			}
			reply := w.Ask(append([][]byte{[]byte(x.add), []byte(key)}, words...)...)
			if got := conversation.Text(reply); got != fmt.Sprintf("(integer) %d", len(words)/x.words) {
				t.Fatalf("%s of %d words answers %s", x.add, len(words), got)
			}
		}
		var words [][]byte
		for i := range elements {
			words = append(words, fmt.Append(nil, "element:", i), fmt.Append(nil, i))[:len(words)+x.words]
			if (i+1)%atOnce == 0 {
				add("a"+x.add, words)
				words = words[:0]
			}
		}
		for _, way := range [][2]string{{"a", "b"}, {"b", "c"}} {
			for cursor := []byte("0"); ; {
				reply := w.Do(fmt.Sprintf("%s %s %s COUNT %d", x.scan, way[0]+x.add, cursor, atOnce))
				words = words[:0]
				cursor, words = scanned(reply, words)
				if add(way[1]+x.add, words); string(cursor) == "0" {
					break
				}
			}
			w.Want(x.length+" "+way[1]+x.add, fmt.Sprintf("(integer) %d", elements))
		}
	}
}

// scanned is the cursor and the words in a reply of HSCAN and its kin.
func scanned(reply []byte, words [][]byte) (cursor []byte, _ [][]byte) {
	_, at, _ := resp.DecodeArray(reply)
	cursor, at = resp.DecodeArgument(reply, at)
	n, head, _ := resp.DecodeArray(reply[at:])
	at += head
	for range n {
		var word []byte
		word, at = resp.DecodeArgument(reply, at)
		words = append(words, word)
	}
	return cursor, words
}
