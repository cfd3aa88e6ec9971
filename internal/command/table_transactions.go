package command

var transactionsTable = table{group: "transactions", acl: catTransaction, rows: []Command{
	{ID: Discard, Name: "discard", Arity: 1, Flags: NoScript | Loading | Stale | Fast | AllowBusy,
		Route: Local, Built: true,
		Since: "2.0.0", Summary: "Drops the commands queued since MULTI."},
	{ID: Exec, Name: "exec", Arity: 1, Flags: NoScript | Loading | Stale | SkipSlowlog,
		Route: Local, Built: true,
		Since: "1.2.0", Summary: "Executes the commands queued since MULTI."},
	{ID: Multi, Name: "multi", Arity: 1, Flags: NoScript | Loading | Stale | Fast | NoMulti | AllowBusy,
		Route: Local, Built: true,
		Since: "1.2.0", Summary: "Begins to queue commands for EXEC."},
	{ID: Unwatch, Name: "unwatch", Arity: 1, Flags: NoScript | Loading | Stale | Fast | AllowBusy,
		Route: Local, Built: true,
		Since: "2.2.0", Summary: "Forgets the keys given to WATCH."},
	{ID: Watch, Name: "watch", Arity: -2, Flags: NoScript | Loading | Stale | Fast | NoMulti | AllowBusy,
		Keys: specs{span(1, -1, 1, RO)}, Route: Local, Built: true,
		Since: "2.2.0", Summary: "Makes the next EXEC fail if one of the keys changes before it."},
}}
