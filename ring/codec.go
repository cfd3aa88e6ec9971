package ring

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cespare/xxhash/v2"
)

// The encoding of a table, all integers unsigned varints unless said otherwise:
//
//	"DLT" version                              4 bytes
//	level settings                             only in version 2
//	gone                                       only from level 22 on
//	epoch issuer seed                          seed 8 bytes
//	count, then (epoch issuer) of each ancestor
//	count, then (joined member) of each node
//	Partitions times owner, follower+1, epoch-since
//	count, then (partition from to) of each move
//	1 if rebalancing is paused, otherwise nothing
//	xxhash64 of all the above                  8 bytes
//
// settings is the document's version and, unless that is 0, 32 bytes of hash. A table of level 0 is
// written as version 1: builds that know no levels read it. A later level may use another version,
// and may lay out everything behind the level in another way; but "DLT", the version and the
// checksum stay where they are, so that every build can say what it lacks.
//
// Owners and followers are small and since is near the epoch, so that a table of
// ten nodes takes about 12 KiB instead of 48.

const (
	codecMagic = "DLT"
	// The versions of the encoding: without and with a level.
	codecPlain   = 1
	codecLeveled = 2

	// MaxTableBytes bounds the encoding of a table that DecodeTable accepts.
	MaxTableBytes = 1 << 20

	checksumBytes = 8

	// pausedFlag is left out when it is not set, so that builds that do not know it can read most
	// tables.
	pausedFlag = 1
)

// Encode returns the encoding of t in a new buffer, which the caller owns.
func (t *Table) Encode() []byte {
	b := make([]byte, 0, 16<<10)
	b = append(b, codecMagic...)
	b = t.appendLevel(b)
	b = binary.AppendUvarint(b, t.Epoch)
	b = appendString(b, t.Issuer)
	b = binary.LittleEndian.AppendUint64(b, t.Seed)
	b = binary.AppendUvarint(b, uint64(len(t.Ancestors)))
	for _, v := range t.Ancestors {
		b = binary.AppendUvarint(b, v.Epoch)
		b = appendString(b, v.Issuer)
	}
	b = binary.AppendUvarint(b, uint64(len(t.Nodes)))
	for i, m := range t.Nodes {
		b = binary.AppendUvarint(b, t.Joined[i])
		b = AppendMember(b, m)
	}
	for p := range Partitions {
		b = binary.AppendUvarint(b, uint64(t.Owner[p]))
		b = binary.AppendUvarint(b, uint64(t.Follower[p]+1)) // NoNode becomes 0
		b = binary.AppendUvarint(b, t.Epoch-t.Since[p])
	}
	b = binary.AppendUvarint(b, uint64(len(t.Moves)))
	for _, m := range t.Moves {
		b = binary.AppendUvarint(b, uint64(m.Partition))
		b = binary.AppendUvarint(b, uint64(m.From))
		b = binary.AppendUvarint(b, uint64(m.To))
	}
	if t.Paused {
		b = append(b, pausedFlag)
	}
	return binary.LittleEndian.AppendUint64(b, xxhash.Sum64(b))
}

// appendLevel appends the version of the encoding and the fields that depend on it.
func (t *Table) appendLevel(b []byte) []byte {
	if t.Level == 0 {
		return append(b, codecPlain)
	}
	b = append(b, codecLeveled)
	b = binary.AppendUvarint(b, uint64(t.Level))
	b = binary.AppendUvarint(b, t.Settings.Version)
	if t.Settings.Version > 0 {
		b = append(b, t.Settings.Hash[:]...)
	}
	if t.Level >= GoneLevel {
		b = binary.AppendUvarint(b, t.Gone)
	}
	return b
}

// DecodeTable decodes what Encode wrote and checks every invariant of a table. The result does not
// refer to b. DecodeTable refuses a table of a higher level than this build's with a *LevelError,
// whatever its layout.
func DecodeTable(b []byte) (*Table, error) {
	t, err := decodeTable(b)
	if err != nil {
		return nil, fmt.Errorf("cannot decode table of %d bytes: %w", len(b), err)
	}
	return t, nil
}

func decodeTable(b []byte) (*Table, error) {
	if len(b) > MaxTableBytes || len(b) < len(codecMagic)+1+checksumBytes {
		return nil, errors.New("impossible length")
	}
	if string(b[:len(codecMagic)]) != codecMagic {
		return nil, fmt.Errorf("begins with %q, want %q", b[:len(codecMagic)], codecMagic)
	}
	// First, because a damaged version byte is damage and not a later level.
	body, sum := b[:len(b)-checksumBytes], b[len(b)-checksumBytes:]
	if xxhash.Sum64(body) != binary.LittleEndian.Uint64(sum) {
		return nil, errors.New("wrong checksum")
	}
	version := b[len(codecMagic)]
	if version != codecPlain && version != codecLeveled {
		return nil, &LevelError{Need: Level + 1}
	}
	r := reader{rest: body[len(codecMagic)+1:]}
	t := r.table(version == codecLeveled)
	if r.err != nil {
		return nil, r.err
	}
	if len(r.rest) > 0 {
		return nil, fmt.Errorf("%d bytes too many", len(r.rest))
	}
	return t, nil
}

// AppendMember appends the encoding of m to dst: the bytes that gossip carries for a member.
func AppendMember(dst []byte, m Member) []byte {
	dst = append(dst, byte(m.Role), byte(m.State))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(m.Boot))
	dst = binary.LittleEndian.AppendUint32(dst, m.Fingerprint)
	dst = appendString(dst, m.ID)
	dst = appendString(dst, m.Addr)
	dst = appendString(dst, m.Admin)
	dst = binary.AppendUvarint(dst, m.Epoch)
	return appendString(dst, m.Issuer)
}

// DecodeMember decodes what AppendMember wrote, and validates it. m does not refer to b. rest is
// the part of b behind the member, a view.
func DecodeMember(b []byte) (m Member, rest []byte, err error) {
	r := reader{rest: b}
	m = r.member()
	if r.err != nil {
		return Member{}, nil, fmt.Errorf("cannot decode member of %d bytes: %w", len(b), r.err)
	}
	return m, r.rest, nil
}

func appendString(dst []byte, s string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(s)))
	return append(dst, s...)
}
