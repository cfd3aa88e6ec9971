package chaos

import (
	"strconv"
	"strings"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// Keys with this in their names are in database 1, all others in database 0. Clients of both read each other's keys,
// with a SELECT in the pipeline before.
const inDatabase1 = "@1"

func databaseOf(key string) uint8 {
	if strings.Contains(key, inDatabase1) {
		return 1
	}
	return 0
}

// reaches reports whether the cluster's level allows the database of a key.
func (x *Rig) reaches(key string) bool {
	return databaseOf(key) == 0 || x.Tables.atLevel(ring.DatabasesLevel)
}

// selects has the commands behind it be about the database of a key, and reports whether the cluster's level allows
// that.
func (s *Session) selects(key string) bool {
	if s.X.reaches(key) {
		s.use(databaseOf(key))
		return true
	}
	return false
}

func (s *Session) use(database uint8) {
	if s.database == database {
		return
	}
	s.database = database
	s.Add(func(reply []byte) {
		s.selected = database
		s.X.switched.Add(1)
		if string(reply) != "+OK\r\n" && !isCut(reply) {
			s.X.Violate("%s: SELECT %d answers %.80q", s.name, database, reply)
		}
	}, "SELECT", strconv.Itoa(int(database)))
}

// absent reads a key in the database in which nobody writes it.
func (s *Session) absent(h *History) {
	s.use(1 - databaseOf(h.Key))
	s.Add(func(reply []byte) {
		if resp.IsError(reply) {
			s.X.Outcome(s, reply, "")
		} else if !s.isNull(reply) {
			s.X.Violate("%s: GET %s in another database answers %.80q", s.name, h.Key, reply)
		}
	}, "GET", h.Key)
}
