package command

var internalTable = table{group: "internal", rows: []Command{
	{ID: Dunlin, Name: "dunlin", Arity: -2, Flags: Internal, Route: Local, Built: true,
		Since: "1.0.0",
		Subs: []*Command{
			{ID: DunlinChallenge, Name: "dunlin|challenge", Arity: 2, Flags: NoAuth, Route: Local, Built: true,
				Since: "1.0.0"},
			{ID: DunlinEach, Name: "dunlin|each", Arity: -4, Route: Local, Built: true,
				Since: "1.0.0"},
			{ID: DunlinPeer, Name: "dunlin|peer", Arity: 4, Flags: NoAuth, Route: Local, Built: true,
				Since: "1.0.0"},
			{ID: DunlinPipe, Name: "dunlin|pipe", Arity: 8, Flags: NoAuth, Route: Local, Built: true,
				Since: "1.0.0"},
			{ID: DunlinTable, Name: "dunlin|table", Arity: 2, Flags: NoAuth, Route: Local, Built: true,
				Since: "1.0.0"},
			{ID: DunlinTake, Name: "dunlin|take", Arity: 3, Route: Local, Built: true,
				Since: "1.0.0"},
		}},
}}
