package ring

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Databases is a set of databases: bit d is set if it has database d.
type Databases uint16

// Has reports whether the set has a database, which is below MaxDatabases.
func (s Databases) Has(database uint8) bool { return s>>(database%MaxDatabases)&1 != 0 }

// With returns the set with one more database.
func (s Databases) With(database uint8) Databases { return s | 1<<database }

// CheckSelectable returns an error if the set has databases that no client can select, of which
// there are n.
func (s Databases) CheckSelectable(n int) error {
	if s>>n == 0 {
		return nil
	}
	return fmt.Errorf("with --databases %d clients can select 0 to %d", n, n-1)
}

// String returns the set as ParseDatabases reads it, in its shortest form: "3,8-15". It is "" for the empty set.
func (s Databases) String() string {
	var b strings.Builder
	for first := 0; first < MaxDatabases; first++ {
		if !s.Has(uint8(first)) {
			continue
		}
		last := first
		for last+1 < MaxDatabases && s.Has(uint8(last+1)) {
			last++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(first))
		if last > first {
			b.WriteString("-" + strconv.Itoa(last))
		}
		first = last
	}
	return b.String()
}

// ParseDatabases parses numbers of databases and ranges of them, separated by commas: "8-15", "8,9,12-13". "" is the
// empty set.
func ParseDatabases(text string) (s Databases, err error) {
	if text == "" {
		return 0, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		first, err := parseDatabase(from)
		if err != nil {
			return 0, err
		}
		last := first
		if isRange {
			if last, err = parseDatabase(to); err != nil {
				return 0, err
			}
			if last < first {
				return 0, fmt.Errorf("the range %q ends before it begins", part)
			}
		}
		for d := first; d <= last; d++ {
			s = s.With(d)
		}
	}
	return s, nil
}

func parseDatabase(text string) (uint8, error) {
	n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 8)
	if err != nil || n >= MaxDatabases {
		return 0, fmt.Errorf("%q is no database: they are numbered from 0 to %d", text, MaxDatabases-1)
	}
	return uint8(n), nil
}

// Placement decides where the keys of each database lie. The keys of most databases are spread over all slots. All keys
// of a pinned database lie in one slot, so that every command of several keys, transaction and script can use any of
// them. The zero Placement pins no database. A Placement is a small immutable value.
type Placement struct{ pinned Databases }

// The names of settings about pinned databases.
const (
	// PinnedSetting has the pinned databases, see PlacementOf.
	PinnedSetting = "config/pinned-databases"
	// closedSetting has the databases that are closed while their placement changes, and by which change: "8-15 name".
	closedSetting = "closed-databases"
)

// ErrPinsDefault is the error of ParsePinned for database 0.
var ErrPinsDefault = errors.New("database 0 cannot be pinned")

// ParsePinned is ParseDatabases for databases that are to be pinned, which database 0 cannot be.
func ParsePinned(text string) (Databases, error) {
	s, err := ParseDatabases(text)
	if err == nil && s.Has(0) {
		return 0, ErrPinsDefault
	}
	return s, err
}

// PlacementOf returns the placement by a settings document, which may be nil. A value that this build cannot read pins
// nothing.
func PlacementOf(s *Settings) Placement {
	text, _ := s.Get(PinnedSetting)
	pinned, _ := ParsePinned(text)
	return Placement{pinned}
}

// pinnedStep is the distance of two pinned partitions. They differ in their low bits, so that they lie in different
// shards of a node, and in their high bits.
const pinnedStep = 257

// PinnedPartition returns the partition of a database's keys while it is pinned.
func PinnedPartition(database uint8) uint16 { return uint16(database) * pinnedStep }

// Pinned returns the databases that are pinned.
func (p Placement) Pinned() Databases { return p.pinned }

// Pins reports whether a database is pinned.
func (p Placement) Pins(database uint8) bool { return p.pinned.Has(database) }

// SlotOf returns the slot of a key of a database.
func (p Placement) SlotOf(database uint8, key []byte) uint16 {
	if p.pinned>>(database%MaxDatabases)&1 != 0 { // Has and PinnedPartition, so written that SlotOf is inlined
		return uint16(database) * (pinnedStep * slotsPerPartition)
	}
	return Slot(key)
}

// PartitionOf returns the partition of a key of a database.
func (p Placement) PartitionOf(database uint8, key []byte) uint16 {
	return Partition(p.SlotOf(database, key))
}

// Closing is a change of the placement that is under way: nodes execute no command on keys of its databases. The zero
// Closing closes none.
type Closing struct {
	Databases Databases
	Name      string // of the change; no other has the same
}

// Changes returns the change of the settings that makes c the closing.
func (c Closing) Changes() map[string]string {
	text := ""
	if c != (Closing{}) {
		text = c.Databases.String() + " " + c.Name
	}
	return map[string]string{closedSetting: text}
}

// ClosingOf returns the closing by a settings document, which may be nil.
func ClosingOf(s *Settings) Closing {
	text, _ := s.Get(closedSetting)
	numbers, name, _ := strings.Cut(text, " ")
	closed, _ := ParseDatabases(numbers)
	return Closing{closed, name}
}
