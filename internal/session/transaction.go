package session

import (
	"bytes"
	"slices"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// Redis's texts about transactions, and two of Dunlin's own.
const (
	errNestedMulti     = "ERR MULTI calls can not be nested"
	errDiscardAlone    = "ERR DISCARD without MULTI"
	errWatchInside     = "ERR WATCH inside MULTI is not allowed"
	errNotInMulti      = "ERR Command not allowed inside a transaction"
	errSetInMulti      = "ERR CONFIG SET can wait for every member of the cluster, and a transaction cannot wait: send it outside MULTI"
	errFunctionInMulti = "ERR changes of functions wait for every member of the cluster, and a transaction cannot wait: send them outside MULTI"
	errExecRefused     = "EXECABORT Transaction discarded because of: "
	errMultiTooLarge   = "ERR the transaction is too large: 65536 commands and 64 MiB are allowed"

	// ErrExecAlone answers EXEC without MULTI.
	ErrExecAlone = "ERR EXEC without MULTI"
	// ErrExecAbort answers EXEC after a command that could not be queued.
	ErrExecAbort = "EXECABORT Transaction discarded because of previous errors."
	// ErrMultiCrossSlot answers EXEC when the keys of its commands, or the watched keys, are not
	// all in one slot.
	ErrMultiCrossSlot = "CROSSSLOT Keys in request don't hash to the same slot"
)

const (
	maxQueued      = 64 << 10 // commands of one transaction
	maxQueuedBytes = 64 << 20 // bytes that they take
	argumentCost   = 24       // bytes that an argument takes besides its own
	queuedCost     = 128      // bytes that a command takes besides its arguments, at most
	watchedCost    = 160      // bytes that a watched key takes besides its own
)

// Transaction is what a connection has queued since MULTI, and the keys that it watches.
type Transaction struct {
	Queue   []Queued
	Watched []Watched // of a node
	Encoded []Encoded // the same, of a proxy
	failed  bool      // a command could not be queued
	inputs  []Input   // in which arguments lie
	lying   int       // bytes of these
	bytes   int       // bytes that the queue takes, with these
	watched int       // bytes that the watched keys take
	keys    int       // number of watched keys
}

// Queued is one command. Its row is that of the subcommand, if there is one.
type Queued struct {
	Cmd  *command.Command
	Args [][]byte
}

// Watched is a key of a database with its version.
type Watched struct {
	Key, Version []byte
	Database     uint8
}

// Encoded are watched keys of one slot and one database, with the versions that their node reported. Text is what
// EXEC sends back to that node.
type Encoded struct {
	Slot uint16
	Keys int
	Text []byte
}

// Input is memory that a connection has read into.
type Input interface{ Release() }

// Release gives back the input in which arguments lie. Nobody may use the Transaction afterwards.
func (tx *Transaction) Release() {
	for _, in := range tx.inputs {
		in.Release()
	}
	tx.inputs = nil
}

// transaction returns the connection's transaction, which it makes when first needed.
func (st *State) transaction() *Transaction {
	if st.Tx == nil {
		st.Tx = &Transaction{}
	}
	return st.Tx
}

// QueuedBytes returns about how many bytes the queue and the watched keys take.
func (st *State) QueuedBytes() int {
	if st.Tx == nil {
		return 0
	}
	return st.Tx.bytes + st.Tx.watched
}

// OwnBytes is QueuedBytes without what lies in input, which is charged to the connection already.
func (st *State) OwnBytes() int {
	if st.Tx == nil {
		return 0
	}
	return st.QueuedBytes() - st.Tx.lying
}

// EndTransaction forgets the queue and the watched keys.
func (st *State) EndTransaction() {
	if st.Tx != nil {
		st.Tx.Release()
	}
	st.TakeTransaction()
}

// TakeTransaction is EndTransaction for somebody who goes on with the transaction that Exec has returned, and
// releases it.
func (st *State) TakeTransaction() {
	st.Multi, st.Tx = false, nil
	st.setApart()
}

// Watch adds keys of the selected database with their versions to the watched ones. It copies them.
func (st *State) Watch(keys, versions [][]byte) {
	watched := make([]Watched, len(keys))
	for i, key := range keys {
		watched[i] = Watched{Key: bytes.Clone(key), Version: bytes.Clone(versions[i]), Database: st.Database}
	}
	st.WatchOwn(watched)
}

// WatchOwn is Watch for keys and versions that the caller has copied, and leaves to the State.
func (st *State) WatchOwn(watched []Watched) {
	tx := st.transaction()
	tx.keys += len(watched)
	for i := range watched {
		tx.watched += len(watched[i].Key) + watchedCost
	}
	if tx.Watched == nil {
		tx.Watched = watched
		return
	}
	tx.Watched = append(tx.Watched, watched...)
}

// WatchEncoded adds keys that a proxy has encoded. The State keeps e.Text.
func (st *State) WatchEncoded(e Encoded) {
	tx := st.transaction()
	tx.keys += e.Keys
	tx.watched += len(e.Text)
	tx.Encoded = append(tx.Encoded, e)
}

// RefuseWatch returns the error for a WATCH of these keys, or "". Their number is limited, because
// EXEC checks all of them under a lock.
func (st *State) RefuseWatch(keys [][]byte) string {
	if st.Multi {
		return errWatchInside
	}
	count, size := len(keys), len(keys)*watchedCost
	for _, key := range keys {
		size += len(key)
	}
	if st.Tx != nil {
		count, size = count+st.Tx.keys, size+st.Tx.watched
	}
	if count > maxQueued || size > maxQueuedBytes {
		return errMultiTooLarge
	}
	return ""
}

// Exec returns the transaction that EXEC executes. If there is none, ok is false, out is dst with
// the reply appended, and the transaction has ended.
func (st *State) Exec(dst []byte) (tx *Transaction, out []byte, ok bool) {
	switch {
	case !st.Multi:
		return nil, resp.AppendError(dst, ErrExecAlone), false
	case st.Tx.failed:
		st.EndTransaction()
		return nil, resp.AppendError(dst, ErrExecAbort), false
	}
	return st.Tx, dst, true
}

// Queues reports whether a command that Refuse let pass is queued rather than executed now.
func (st *State) Queues(c *command.Command) bool {
	if !st.Multi {
		return false
	}
	switch c.ID {
	case command.Exec, command.Discard, command.Multi, command.Watch, command.Quit, command.Reset:
		return false
	}
	return true
}

// Enqueue queues a command, and appends the reply. It copies the arguments, unless they lie in an input that it can
// have: it releases that, sooner or later.
func (st *State) Enqueue(c *command.Command, args [][]byte, in Input, dst []byte) []byte {
	tx := st.Tx
	defer func() {
		if in != nil {
			in.Release()
		}
	}()
	if c.Subs != nil && len(args) > 1 {
		c = c.Sub(args[1])
	}
	cost := queuedCost
	for _, arg := range args {
		cost += len(arg) + argumentCost
	}
	switch {
	case c.ID == command.ConfigSet:
		return st.fail(dst, errSetInMulti)
	case c.IsFunction() && c.Flags&command.Write != 0:
		return st.fail(dst, errFunctionInMulti)
	case !mayQueue(c):
		return st.fail(dst, errNotInMulti)
	case len(tx.Queue) == maxQueued || tx.bytes+cost > maxQueuedBytes:
		tx.Release()
		tx.Queue, tx.bytes, tx.lying = nil, 0, 0
		return st.fail(dst, errMultiTooLarge)
	case !tx.failed: // otherwise none of it is going to be executed
		own := slices.Clone(args)
		if in != nil {
			tx.inputs = append(tx.inputs, in)
			tx.lying += cost - queuedCost - argumentCost*len(args)
			in = nil
		} else {
			for i, arg := range own {
				own[i] = bytes.Clone(arg)
			}
		}
		tx.Queue = append(tx.Queue, Queued{c, own})
		tx.bytes += cost
	}
	return append(dst, "+QUEUED\r\n"...)
}

// FailTransaction has EXEC execute nothing, if the client queues commands: one of them could not be queued.
func (st *State) FailTransaction() {
	if st.Multi {
		st.Tx.failed = true
	}
}

func (st *State) fail(dst []byte, text string) []byte {
	st.Tx.failed = true
	return resp.AppendError(dst, text)
}

// mayQueue reports whether a command can be executed in a transaction: without waiting, by the
// owner of a slot or by the process to which the client is connected.
func mayQueue(c *command.Command) bool {
	if c.Flags&command.NoMulti != 0 {
		return false
	}
	switch c.Route {
	case command.Key, command.SplitKeys, command.SplitPairs:
		return true
	}
	switch c.ID {
	case command.Ping, command.Echo, command.Time, command.Select, command.Unwatch,
		command.ClientID, command.ClientInfo, command.ClientSetName, command.ClientGetName, command.ClientSetInfo,
		command.CommandCount, command.CommandInfo, command.CommandDocs, command.CommandGetKeys, command.Wait, command.WaitAOF,
		command.FunctionDump, command.FunctionList:
		return true
	}
	return false
}

func multi(_ *Server, st *State, _ [][]byte, dst []byte) ([]byte, Action) {
	if st.Multi {
		return resp.AppendError(dst, errNestedMulti), ActionNone
	}
	st.Multi = true
	st.setApart()
	st.transaction()
	return resp.AppendOK(dst), ActionNone
}

func discard(_ *Server, st *State, _ [][]byte, dst []byte) ([]byte, Action) {
	if !st.Multi {
		return resp.AppendError(dst, errDiscardAlone), ActionNone
	}
	st.EndTransaction()
	return resp.AppendOK(dst), ActionNone
}

// unwatch has no effect inside a transaction: EXEC checks the keys all the same.
func unwatch(_ *Server, st *State, _ [][]byte, dst []byte) ([]byte, Action) {
	if st.Tx != nil {
		st.Tx.Watched, st.Tx.Encoded, st.Tx.watched, st.Tx.keys = nil, nil, 0, 0
	}
	return resp.AppendOK(dst), ActionNone
}
