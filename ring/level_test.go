package ring

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"testing"

	"github.com/cespare/xxhash/v2"
)

func leveledTable() *Table {
	t := fullTable()
	t.Level = Level
	t.Settings = SettingsID{Version: 3, Hash: sha256.Sum256([]byte("settings"))}
	return t
}

func TestLeveledTableSurvivesEncoding(t *testing.T) {
	table := leveledTable()
	checkTable(t, table)
	table.Paused = true
	checkTable(t, table)
	table.Settings = SettingsID{}
	checkTable(t, table)
}

// TestLevelZeroIsAsBefore compares encodings of level 0 with what builds wrote that knew no levels
// (commit aed5c16): they must read them, and we theirs.
func TestLevelZeroIsAsBefore(t *testing.T) {
	paused := fullTable()
	paused.Paused = true
	m := node("a", 1)
	m.Level = 7
	for what, c := range map[string]struct {
		encoded []byte
		want    string
	}{
		"table":        {fullTable().Encode(), "0ad498ce6611fdad2a9a5ab37827dccbe54e921742c46d5f67f4152cb393b1b8"},
		"paused table": {paused.Encode(), "f453cc914097ee9baf1cbcedd15d156e900b8b6ed445887f079e0a168dd4221c"},
		"member":       {AppendMember(nil, m), "8353030e0db9c0a750644ef6ade25042d24b16f6504679b31a1360398b0e6a4c"},
	} {
		sum := sha256.Sum256(c.encoded)
		if got := hex.EncodeToString(sum[:]); got != c.want {
			t.Errorf("%s is encoded in another way than before: %d bytes of SHA-256 %s, want %s", what, len(c.encoded), got, c.want)
		}
	}
}

// TestTablesOfLaterLevels: a table that this build cannot understand is refused by name, even if
// nothing behind its level is laid out as we know it.
func TestTablesOfLaterLevels(t *testing.T) {
	later := append([]byte(codecMagic), codecLeveled, Level+1)
	later = append(later, "and who knows what"...)
	later = binary.LittleEndian.AppendUint64(later, xxhash.Sum64(later))
	var refusal *LevelError
	if _, err := DecodeTable(later); !errors.As(err, &refusal) || refusal.Need != Level+1 {
		t.Errorf("a table of level %d is refused with %v", Level+1, err)
	}
	unknown := bytes.Clone(later[:len(later)-checksumBytes])
	unknown[len(codecMagic)] = codecLeveled + 1
	unknown = binary.LittleEndian.AppendUint64(unknown, xxhash.Sum64(unknown))
	if _, err := DecodeTable(unknown); !errors.As(err, &refusal) {
		t.Errorf("a table of an unknown encoding is refused with %v", err)
	}
	zero := leveledTable().Encode()
	zero[len(codecMagic)+1] = 0
	body := zero[:len(zero)-checksumBytes]
	binary.LittleEndian.PutUint64(zero[len(body):], xxhash.Sum64(body))
	if _, err := DecodeTable(zero); err == nil {
		t.Error("a table that names level 0 was decoded: it has two encodings")
	}
}

func TestRaise(t *testing.T) {
	members := nodes("a", "b")
	if got := CommonLevel(members); got != 0 {
		t.Errorf("common level is %d, want 0", got)
	}
	members[0].Level, members[1].Level = 2, 1
	if got := CommonLevel(members); got != 1 {
		t.Errorf("common level is %d, want 1", got)
	}
	if got := CommonLevel(nil); got != 0 {
		t.Errorf("common level of nobody is %d", got)
	}
	first := Plan(nil, members, nil, members[0], 2, fixedSeed)
	if first.Level != 0 || first.Nodes[0].Level != 0 {
		t.Errorf("the first table has level %d, its node %d", first.Level, first.Nodes[0].Level)
	}
	first = Raise(first, members[0], 1)
	if Raise(first, members[0], 1) != nil {
		t.Error("a level that is there was raised")
	}
	second := Raise(first, members[1], 2)
	if second.Level != 2 || !second.Newer(first) || second.Owner != first.Owner || second.Issuer != members[1].Name() {
		t.Errorf("raised: level %d, %v", second.Level, second.Version())
	}
	second.Settings.Version = 4
	members = append(members, node("c", 3))
	third := Plan(second, members, nil, members[0], 2, fixedSeed)
	if third == nil || third.Level != 2 || third.Settings != second.Settings {
		t.Errorf("the plan after that: %+v", third)
	}
	// Somebody who could not read the second table replaces it unread.
	blind := first.successor(members[2])
	blind.Epoch, blind.Ancestors = 9, append(blind.Ancestors, second.Version())
	blind.Level = 0
	if blind.Newer(second) {
		t.Error("a table of a lower level is newer")
	}
	if healed := heal([]*Table{second, blind}, members, members[0], 2); healed.Level != 2 {
		t.Errorf("healed to level %d", healed.Level)
	}
	// The holder of a table that nobody could read has said of what level it is.
	members[1].Epoch, members[1].Issuer, members[1].TableLevel = second.Epoch, second.Issuer, second.Level
	if healed := heal([]*Table{blind}, members, members[0], 2); !healed.Newer(second) || healed.Nodes[1].TableLevel != 0 {
		t.Errorf("healed to level %d, which the holder of a table of level %d cannot adopt", healed.Level, second.Level)
	}
}
