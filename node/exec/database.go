package exec

import (
	"fmt"

	"github.com/dunlin-cache/dunlin/internal/session"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/ring"
)

const errDatabasesLevel = "ERR databases other than 0 need protocol level %d, and this cluster speaks %d: upgrade all members"

// DatabaseArg parses Args[i], the number of a database. If it is none, DatabaseArg answers the error and ok is false.
func (r *Request) DatabaseArg(i int) (database uint8, ok bool) {
	database, refusal := session.ParseDatabase(r.Args[i], r.Databases)
	if level := r.Level(); refusal == "" && database != 0 && level < ring.DatabasesLevel {
		refusal = fmt.Sprintf(errDatabasesLevel, ring.DatabasesLevel, level)
	}
	if refusal != "" {
		r.Fail(refusal)
	}
	return database, refusal == ""
}

// Select makes another database that of the present transaction or script.
func (r *Request) Select(database uint8) {
	r.Database = database
	if r.InTransaction {
		r.Transaction = r.Transaction.Select(database)
	}
}

// SlotOf returns the slot of a key of the command's database.
func (r *Request) SlotOf(key []byte) uint16 { return r.Placement.SlotOf(r.Database, key) }

// HoldsTarget reports whether a key of any database lies in the command's partition, and can be used. If not, it
// answers that.
func (r *Request) HoldsTarget(database uint8, key []byte) bool {
	switch {
	case r.Closed.Has(database):
		r.Fail(ErrClosed)
	case r.Placement.PartitionOf(database, key) != r.Partition:
		r.Fail(ErrCrossSlot)
	default:
		return true
	}
	return false
}

// Section is what holds the command's key: its partition, of the command's database.
func (r *Request) Section() uint16 { return engine.Section(r.Partition, r.Database) }

// NoticesOf are the Notices of a command about another database than its own.
func (r *Request) NoticesOf(database uint8) Notices {
	n := r.Notices
	n.Database = database
	return n
}
