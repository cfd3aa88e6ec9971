package command

var transactionsTable = table{group: "transactions", acl: catTransaction, rows: []Command{
	{ID: Discard, Name: "discard", Arity: 1, Flags: NoScript | Loading | Stale | Fast | AllowBusy,
		Since: "2.0.0"},
	{ID: Exec, Name: "exec", Arity: 1, Flags: NoScript | Loading | Stale | SkipSlowlog,
		Since: "1.2.0"},
	{ID: Multi, Name: "multi", Arity: 1, Flags: NoScript | Loading | Stale | Fast | NoMulti | AllowBusy,
		Since: "1.2.0"},
	{ID: Unwatch, Name: "unwatch", Arity: 1, Flags: NoScript | Loading | Stale | Fast | AllowBusy,
		Since: "2.2.0"},
	{ID: Watch, Name: "watch", Arity: -2, Flags: NoScript | Loading | Stale | Fast | NoMulti | AllowBusy,
		Keys:  specs{span(1, -1, 1, RO)},
		Since: "2.2.0"},
}}
