package command

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// table has the rows of one group. Its ACL categories apply to every row that names none, except
// containers, which do nothing themselves.
type table struct {
	group string
	acl   category
	rows  []Command
}

var tables = []*table{
	&stringTable, &genericTable, &bitmapTable, &hashTable, &listTable,
	&setTable, &sortedSetTable, &streamTable, &geoTable, &hyperLogLogTable,
	&connectionTable, &serverTable, &clusterTable, &pubSubTable,
	&scriptingTable, &transactionsTable, &sentinelTable, &internalTable,
}

var (
	byID   [NumIDs]*Command
	sorted []*Command // top level, by name, without internal rows
	listed []*Command // of those, the built ones
)

// init checks the table at the start of the process, so every test run shows a row that contradicts
// another.
func init() {
	for _, t := range tables {
		for i := range t.rows {
			build(t, &t.rows[i])
		}
	}
	byName := func(a, b *Command) int { return cmp.Compare(a.Name, b.Name) }
	slices.SortFunc(sorted, byName)
	for _, c := range sorted {
		if c.Built {
			listed = append(listed, c)
		}
	}
	for id := ID(1); id < NumIDs; id++ {
		if byID[id] == nil {
			panic(fmt.Sprintf("BUG: command ID %d has no row", id))
		}
	}
}

// build completes a top-level row and those of its subcommands and enters them.
func build(t *table, c *Command) {
	complete(t, c, c.Name, c.Flags)
	if Lookup([]byte(c.Name)) != nil {
		panic("BUG: two rows for command " + c.Name)
	}
	addIndex(c)
	for _, sub := range c.Subs {
		own, ok := strings.CutPrefix(sub.Name, c.Name+"|")
		if !ok {
			panic("BUG: subcommand " + sub.Name + " under " + c.Name)
		}
		complete(t, sub, own, c.Flags)
	}
	if c.Flags&Internal == 0 {
		sorted = append(sorted, c)
	}
}

// maxWords bounds a request without keys, names included. The server answers many such commands on a
// loop, in time and with memory that grow with each argument, however short and often repeated. No
// honest client names that many sections, commands or connections.
const maxWords = 1024

// maxBytes bounds the arguments of such a request together. Those that load scripts have none, for which loops do
// nothing, and PUBLISH has its own.
const maxBytes = 1 << 20

// complete sets the fields that follow from the rest of a row. own is the name by which the row is
// looked up, flags are those of its top-level row.
func complete(t *table, c *Command, own string, flags Flags) {
	if c.ID == 0 || byID[c.ID] != nil || len(own) > maxName {
		panic("BUG: ID or name of command row " + c.Name)
	}
	byID[c.ID] = c
	c.fold = foldName([]byte(own))
	c.Flags |= flags & Internal
	if c.most = math.MaxInt; c.Keys == nil && c.Flags&Internal == 0 {
		c.most = maxWords
	}
	c.Group = t.group
	if c.acl == 0 && c.Subs == nil {
		c.acl = t.acl
	}
	c.firstKey = c.placed
	c.First, c.Last, c.Step = legacyRange(c.Keys)
	for _, k := range c.Keys {
		if k.Begin != BeginIndex || k.Find != FindRange {
			c.Flags |= MovableKeys
		}
	}
	if len(c.Keys) > 0 && c.Keys[0].Begin == BeginIndex && c.Keys[0].Find == FindRange {
		c.firstKey = uint8(c.Keys[0].Index)
	}
}

// legacyRange returns the one range of keys that clients from before key specs expect. Adjoining
// ranges become one. Keys that follow a gap or need a search are left out.
func legacyRange(keys []KeySpec) (first, last, step int) {
	for _, k := range keys {
		if k.Begin != BeginIndex || k.Find != FindRange {
			continue
		}
		if first != 0 && k.Index != last+1 {
			break
		}
		if first == 0 {
			first, step = k.Index, k.Step
		}
		last = k.Last
		if k.Last >= 0 {
			last = k.Index + k.Last
		}
	}
	return first, last, step
}
