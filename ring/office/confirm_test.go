package office

import (
	"errors"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/ring"
)

// asleep is a stage whose n1 has stood still with a table that names n1 and n2. n3 came meanwhile.
func asleep(t *testing.T) (*stage, *Config) {
	s := &stage{alive: []ring.Member{node("n1", 1), node("n2", 2)}}
	m := s.start()
	m.run(time.Second, 3*time.Second, Event{})
	if s.table == nil || len(s.table.Nodes) != 2 {
		t.Fatalf("the table is %v", s.table)
	}
	return s, &m.cfg
}

func (s *stage) confirms(t *testing.T, c *Config, doubted *ring.Table, told []Told, confirms, alone bool) {
	t.Helper()
	if _, err := c.Confirm(s, doubted, told); (err == nil) != confirms || !confirms && !errors.Is(err, errNobody) {
		t.Errorf("it confirms its table: %v, want %v", err, confirms)
	}
	if is := c.Alone(s, doubted, told); is != alone {
		t.Errorf("nobody is left who knows: %v, want %v", is, alone)
	}
}

// TestWitnesses: who came while a member stood still knows no more than that member.
func TestWitnesses(t *testing.T) {
	s, c := asleep(t)
	doubted, n2, n3 := s.table, s.alive[1], node("n3", 3)
	s.confirms(t, c, doubted, nil, false, false) // n2 has not answered yet
	s.confirms(t, c, doubted, []Told{{n2, doubted}}, true, false)

	s.alive[1] = n3 // n2 is dead
	s.confirms(t, c, doubted, nil, false, false)
	s.confirms(t, c, doubted, []Told{{n3, doubted}}, false, true)
	s.confirms(t, c, doubted, []Told{{n2, doubted}}, false, false) // or who has come to its address
	own := ring.Plan(doubted, s.alive, nil, c.Self, 1, nil)
	s.confirms(t, c, doubted, []Told{{n3, own}}, false, true)
	s.alive = s.alive[:1]
	s.confirms(t, c, doubted, nil, false, true)
}

// TestWitnessOfOthersTable: who came to those that have gone on without a member knows that.
func TestWitnessOfOthersTable(t *testing.T) {
	s, c := asleep(t)
	doubted, n2, n3 := s.table, s.alive[1], node("n3", 3)
	s.alive[1] = n3
	without := ring.Plan(doubted, []ring.Member{n2, n3}, nil, n2, 1, nil)
	s.confirms(t, c, doubted, []Told{{n3, without}}, true, false)
	if s.table != without {
		t.Error("it has not adopted their table")
	}
}

// TestWitnessOfOneNode: without a member that is the only node of its table, nobody can have gone on.
func TestWitnessOfOneNode(t *testing.T) {
	s := &stage{alive: []ring.Member{node("n1", 1)}}
	m := s.start()
	m.run(time.Second, 3*time.Second, Event{})
	s.alive = append(s.alive, node("n2", 2))
	s.confirms(t, &m.cfg, s.table, []Told{{s.alive[1], s.table}}, true, false)
}
