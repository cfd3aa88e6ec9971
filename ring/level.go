package ring

import (
	"fmt"
	"slices"
)

// Level is the protocol level of this build: what it can send to other members and understand of
// what they send. The levels so far:
//
//	0  everything before levels were counted
//	1  tables carry a level and name the settings document
//	2  streams carry changes of values with parts and units of effects, and answers name keys that
//	   a receiver lacks
//	3  proxies understand pushes, so that nodes may answer their commands later
//	4  answers to streams may say that the receiver's loops are strained
//	5  a pipe's level may be told behind its greeting, nodes answer slow transactions later, and a
//	   proxy may say that nobody waits for a command any more
//	6  a node that obeys a table may say which partitions it still holds; pipes may carry commands that
//	   do not count as uses of keys; nodes check a CONFIG SET before any of them executes it
//	7  hashes, sets, sorted sets and lists
//	8  blocking commands wait at nodes
//	9  proxies listen to what is published (DUNLIN LISTEN), and clients publish and subscribe through them
//	10 nodes run scripts
//	11 nodes publish keyspace notifications, and proxies listen for them at all nodes
//	12 proxies claim keys (DUNLIN CLAIM), so that blocking commands may name keys of several slots
//	13 functions are settings of the cluster, and a change of settings may name the document that it changes
//	14 pipes may track the keys that their commands read
//	15 proxies tell a FLUSHALL of all nodes from other reasons for which all keys may have changed
//	16 streams
//	17 databases: requests on pipes, effects and snapshots may name one other than 0
//	18 nodes gather what other nodes lend (DUNLIN GATHER, LEND), so that commands may name keys of several slots
//	19 settings may pin databases
//	20 nodes reserve partitions for each other (DUNLIN RESERVE), so that commands may change keys of several slots
//	21 nodes say of which partitions they have handed over all that concerns channels (DUNLIN HANDED)
//	22 tables say when the last node joined that has gone since; a member names whose table it asks for
//	23 nodes say with what a blocking command has popped by which token its proxy may return that (DUNLIN RETURN)
//	24 blocking commands that are sent again say for how long they have waited
//
// The table carries the level of the cluster. The coordinator raises it when every member speaks
// more, and nobody ever lowers it. So members may use what a level brings as soon as the table has
// that level: a process that does not speak it is no member, and cannot become one.
const Level = 24

// EffectsLevel is the lowest level whose members understand changes of values with parts, and
// units of effects.
const EffectsLevel = 2

// LaterLevel is the lowest level of a proxy to which nodes answer later. A pipe names its proxy's
// level, so the table's does not matter.
const LaterLevel = 3

// StrainLevel is the lowest level whose members understand that a receiver says it is strained.
const StrainLevel = 4

// OfferLevel is the level of the cluster from which on a proxy may say its own on a pipe that it has
// opened before (DUNLIN LEVEL), may cancel commands (DUNLIN CANCEL), and expect that nodes answer slow
// transactions later.
const OfferLevel = 5

// HoldLevel is the lowest level of a table that a node obeys although it still holds partitions that
// the table takes from it: it names them when it acknowledges the table (DUNLIN TAKE).
const HoldLevel = 6

// NoTouchLevel is the level of the cluster from which on a proxy may open pipes for clients that have
// said CLIENT NO-TOUCH.
const NoTouchLevel = 6

// CheckLevel is the level of the cluster from which on nodes say whether they would refuse a CONFIG SET.
const CheckLevel = 6

// CollectionsLevel is the lowest level whose members know hashes, sets, sorted sets and lists: what
// commands make of them, and the effects on them.
const CollectionsLevel = 7

// BlockingLevel is the level of the cluster from which on clients may send blocking commands.
const BlockingLevel = 8

// PubSubLevel is the level of the cluster from which on proxies listen to what is published.
const PubSubLevel = 9

// ScriptsLevel is the level of the cluster from which on clients may send scripts.
const ScriptsLevel = 10

// EventsLevel is the level of the cluster from which on nodes publish keyspace notifications.
const EventsLevel = 11

// ClaimLevel is the level of the cluster from which on blocking commands may name keys of several slots.
const ClaimLevel = 12

// FunctionsLevel is the level of the cluster from which on it has functions (FUNCTION LOAD, FCALL).
const FunctionsLevel = 13

// TrackingLevel is the level of the cluster from which on a proxy may open pipes for clients that track.
const TrackingLevel = 14

// FlushedLevel is the lowest level of a proxy that nodes tell of a FLUSHALL of all nodes. A pipe names its proxy's
// level, so the table's does not matter.
const FlushedLevel = 15

// StreamsLevel is the lowest level whose members know streams: what commands make of them, and the effects on them.
const StreamsLevel = 16

// DatabasesLevel is the lowest level whose members know databases other than 0, and the level of the cluster from which
// on clients may select one.
const DatabasesLevel = 17

// GatherLevel is the level of the cluster from which on proxies may send commands whose keys lie in several slots, and
// nodes lend each other values.
const GatherLevel = 18

// PinnedLevel is the level of the cluster from which on databases may be pinned (PinnedSetting).
const PinnedLevel = 19

// ReserveLevel is the level of the cluster from which on proxies may send commands that change keys
// of several slots, and nodes reserve partitions for each other.
const ReserveLevel = 20

// HandedLevel is the level of the cluster from which on nodes expect DUNLIN HANDED of those who hand partitions over.
const HandedLevel = 21

// GoneLevel is the lowest level of a table that has Gone, and from which on members name whose table they ask
// for (DUNLIN TABLE).
const GoneLevel = 22

// ReturnLevel is the lowest level of a proxy that nodes give tokens for what its blocking commands
// pop, and the level of the cluster from which on a proxy sends DUNLIN RETURN.
const ReturnLevel = 23

// WaitedLevel is the lowest level of nodes that understand for how long a blocking command has waited elsewhere.
const WaitedLevel = 24

// maxLevel is the highest level that gossip can carry.
const maxLevel = 255

// LevelError is the error about data that only members of a higher level understand.
type LevelError struct {
	Need uint64 // at least
}

func (e *LevelError) Error() string {
	return fmt.Sprintf("it needs protocol level %d and this build speaks %d: upgrade it", e.Need, Level)
}

// CommonLevel returns the highest level that all of alive speak, or 0 if alive is empty.
func CommonLevel(alive []Member) uint8 {
	if len(alive) == 0 {
		return 0
	}
	return slices.MinFunc(alive, func(a, b Member) int { return int(a.Level) - int(b.Level) }).Level
}

// TableLevel returns the highest level of a table that one of members holds, as far as they say.
func TableLevel(members []Member) (level uint8) {
	for _, m := range members {
		level = max(level, m.TableLevel)
	}
	return level
}

// Raise returns the successor of cur that has the level and is otherwise equal, or nil if level is
// not higher than cur's.
func Raise(cur *Table, self Member, level uint8) *Table {
	if cur.Level >= level {
		return nil
	}
	next := cur.successor(self)
	next.Level = level
	return next
}
