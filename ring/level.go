package ring

import (
	"fmt"
	"slices"
)

// Level is the protocol level of this build: what it can say to other members and understand of
// them. The levels so far:
//
//	0  everything before levels were counted
//	1  tables carry a level and name the settings document
//
// A cluster has the level that its table carries. The coordinator raises it when every member
// speaks more, and nobody ever lowers it. So what a level brings may be used as soon as the table
// has the level: whoever does not speak it is no member, and does not become one.
const Level = 1

// maxLevel is the highest that gossip can carry.
const maxLevel = 255

// LevelError is the error for what only members of a higher level understand.
type LevelError struct {
	Need uint64 // at least
}

func (e *LevelError) Error() string {
	return fmt.Sprintf("it needs protocol level %d and this build speaks %d: upgrade it", e.Need, Level)
}

// CommonLevel returns the highest level that every one of alive speaks, 0 if there is nobody.
func CommonLevel(alive []Member) uint8 {
	if len(alive) == 0 {
		return 0
	}
	return slices.MinFunc(alive, func(a, b Member) int { return int(a.Level) - int(b.Level) }).Level
}

// Raise returns the table that follows cur and differs from it in its level only; nil if level is
// not higher.
func Raise(cur *Table, self Member, level uint8) *Table {
	if cur.Level >= level {
		return nil
	}
	next := cur.successor(self)
	next.Level = level
	return next
}
