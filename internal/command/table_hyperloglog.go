package command

var hyperLogLogTable = table{group: "hyperloglog", acl: catHyperLogLog, rows: []Command{
	{ID: PFAdd, Name: "pfadd", Arity: -2, Flags: Write | DenyOOM | Fast,
		Keys: specs{at(1, RW|Insert)}, Route: Key, Built: true,
		Since: "2.8.9", Summary: "Adds elements to a HyperLogLog."},
	{ID: PFCount, Name: "pfcount", Arity: -2, Flags: ReadOnly | Idempotent,
		Keys: specs{span(1, -1, 1, RW|Access)}, Route: Key, Built: true, Gathers: GatherRead,
		Since: "2.8.9", Summary: "Estimates how many different elements HyperLogLogs have seen."},
	{ID: PFDebug, Name: "pfdebug", Arity: 3, Flags: Write | DenyOOM | Admin,
		Keys: specs{at(2, RW|Access)}, Route: Local, Built: true,
		Since: "2.8.9", Summary: "Shows the inside of a HyperLogLog, for developers."},
	{ID: PFMerge, Name: "pfmerge", Arity: -2, Flags: Write | DenyOOM | Idempotent,
		Keys: specs{at(1, RW|Access|Insert), span(2, -1, 1, RO|Access)}, Route: Key, Built: true, Gathers: GatherMerge,
		Since: "2.8.9", Summary: "Merges HyperLogLogs into one."},
	{ID: PFSelfTest, Name: "pfselftest", Arity: 1, Flags: Admin,
		Route: Local, Built: true,
		Since: "2.8.9", Summary: "Tests the HyperLogLog implementation, for developers."},
}}
