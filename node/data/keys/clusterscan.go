package keys

import (
	"bytes"
	"strconv"
	"sync"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/ring"
)

// CLUSTERSCAN is SCAN for clients that know which node serves which slot. The cursor has a hash tag, so
// each call goes to the owner of what it looks at: of one partition.
//
//	0 ──▶ 0-{tag of slot 0}-0 ──▶ 0-{same tag}-position ──▶ 0-{tag of slot 4}-0 ──▶ … ──▶ 0
//
// The first number names the order of keys within a partition. All builds have the same so far.
const orderOfKeys = "0"

// clusterScan: CLUSTERSCAN cursor [MATCH pattern] [COUNT count] [TYPE type] [SLOT slot]
func clusterScan(r *exec.Request) {
	q := scanQuery{count: defaultScanCount, bySlot: true, slot: noSlot, slotOf: r.SlotOf}
	errText := q.parse(r.Types, r.Args[2:])
	if r.InTransaction || r.Hold != nil { // which has the partition locked; clients and proxies refuse it before
		errText = errNotInMulti
	}
	if errText != "" {
		r.Fail(errText)
		return
	}
	if string(r.Args[1]) == "0" {
		replyScanned(r, slotCursor(max(q.slot, 0), 0), 0, r.Worker.Body[:0])
		return
	}
	p := int(r.Partition)
	position, ok := parseSlotCursor(r.Args[1])
	if !ok || q.slot != noSlot && int(ring.Partition(uint16(q.slot))) != p {
		r.Fail(errInvalidCursor)
		return
	}
	var wanted ring.PartitionSet
	wanted.Add(r.Partition)
	q.cursor = member.CursorAt(p, position)
	body, found, next := scanKeys(r, &q, &wanted, r.Worker.Body[:0])
	cursor, following := []byte("0"), (p+1)*slotsPerPartition
	switch {
	case next != member.EndOfScan:
		cursor = slotCursor(int(ring.Slot(r.Args[1])), next.Position())
	case q.slot == noSlot && following < ring.Slots:
		cursor = slotCursor(following, 0)
	}
	replyScanned(r, cursor, found, body)
}

// replyScanned answers a cursor and keys.
func replyScanned(r *exec.Request, cursor []byte, found int, body []byte) {
	r.Out = resp.AppendBulk(resp.AppendArray(r.Out, 2), cursor)
	replyKeys(r, found, body)
}

// slotCursor returns the cursor of a place in a slot's partition.
func slotCursor(slot int, position uint64) []byte {
	tag := slotTags()[slot]
	cursor := append([]byte(orderOfKeys+"-{"), tag[:]...)
	return strconv.AppendUint(append(cursor, "}-"...), position, 10)
}

// parseSlotCursor reads the position in a cursor. In an order of keys that is not this build's it means
// nothing: the partition is scanned from its beginning.
func parseSlotCursor(cursor []byte) (position uint64, ok bool) {
	order, rest, _ := bytes.Cut(cursor, []byte("-{"))
	tag, digits, found := bytes.Cut(rest, []byte("}-"))
	position, err := strconv.ParseUint(string(digits), 10, 64)
	if !found || len(tag) == 0 || err != nil || position > member.MaxPosition {
		return 0, false
	}
	if string(order) != orderOfKeys {
		position = 0
	}
	return position, true
}

// slotTags has a hash tag for each slot.
var slotTags = sync.OnceValue(makeSlotTags)

// makeSlotTags tries all tags of three letters. The CRC of which a slot is made is linear: that of a tag is
// the sum of what its letters add at their places. So each try is two additions.
func makeSlotTags() *[ring.Slots][3]byte {
	const letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	var adds [3][len(letters)]uint16
	for place := range adds {
		for i := range adds[place] {
			var tag [3]byte
			tag[place] = letters[i]
			adds[place][i] = ring.Slot(tag[:])
		}
	}
	var tags [ring.Slots][3]byte
	for i, first := range adds[0] {
		for j, second := range adds[1] {
			for k, third := range adds[2] {
				tags[first^second^third] = [3]byte{letters[i], letters[j], letters[k]}
			}
		}
	}
	return &tags
}
