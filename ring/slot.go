package ring

import "bytes"

const (
	// Slots is the number of Redis Cluster's hash slots.
	Slots = 16384
	// Partitions is the number of units of ownership.
	Partitions = 4096
	// MaxDatabases is how many databases there are at most. Each of them has all slots.
	MaxDatabases = 16

	slotsPerPartition = Slots / Partitions

	// hashed is how many bytes of a key are hashed: all of one that can exist. A longer one is refused where its
	// beginning belongs; to hash hundreds of megabytes takes half a second.
	hashed = 1<<16 - 1
)

// Slot returns the hash slot of key, as Redis Cluster computes it. If key has a non-empty part
// between its first '{' and the next '}', only that part is hashed, so that clients can place keys
// together. Slot only reads key.
func Slot(key []byte) uint16 {
	if len(key) > hashed {
		key = key[:hashed]
	}
	open := bytes.IndexByte(key, '{')
	if open >= 0 {
		return crc16(hashTag(key, open)) % Slots
	}
	return crc16(key) % Slots
}

// Partition returns the partition that contains slot.
func Partition(slot uint16) uint16 { return slot / slotsPerPartition }

// PartitionOf returns the partition of key, which it only reads.
func PartitionOf(key []byte) uint16 { return Slot(key) / slotsPerPartition }

// hashTag returns the part of key that is hashed; open is the index of the first brace. It is a
// function of its own so that keys without braces pay for one search only.
func hashTag(key []byte, open int) []byte {
	length := bytes.IndexByte(key[open+1:], '}')
	if length <= 0 {
		return key // no closing brace, or "{}": the whole key counts
	}
	return key[open+1 : open+1+length]
}
