package command

var internalTable = table{group: "internal", rows: []Command{
	{ID: Dunlin, Name: "dunlin", Arity: -2, Flags: Internal,
		Route: Local, Built: true,
		Since: "1.0.0", Summary: "Container of the commands between members.",
		Subs: []*Command{
			{ID: DunlinChallenge, Name: "dunlin|challenge", Arity: 2, Flags: NoAuth,
				Route: Local, Built: true,
				Since: "1.0.0", Summary: "Returns a nonce to authenticate with."},
			{ID: DunlinEach, Name: "dunlin|each", Arity: -4,
				Route: Local, Built: true,
				Since: "1.0.0", Summary: "Runs a command over a set of partitions."},
			{ID: DunlinPeer, Name: "dunlin|peer", Arity: 4, Flags: NoAuth,
				Route: Local, Built: true,
				Since: "1.0.0", Summary: "Authenticates a connection between nodes."},
			{ID: DunlinPipe, Name: "dunlin|pipe", Arity: 8, Flags: NoAuth,
				Route: Local, Built: true,
				Since: "1.0.0", Summary: "Turns the connection into a pipe of a proxy."},
			{ID: DunlinTable, Name: "dunlin|table", Arity: 2, Flags: NoAuth,
				Route: Local, Built: true,
				Since: "1.0.0", Summary: "Returns the table."},
			{ID: DunlinTake, Name: "dunlin|take", Arity: 3,
				Route: Local, Built: true,
				Since: "1.0.0", Summary: "Hands over a newer table and waits until it rules."},
		}},
}}
