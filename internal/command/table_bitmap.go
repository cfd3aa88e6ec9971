package command

var bitmapTable = table{group: "bitmap", acl: catBitmap, rows: []Command{
	{ID: BitCount, Name: "bitcount", Arity: -2, Flags: ReadOnly | Idempotent, Keys: specs{at(1, RO|Access)},
		Route: Key,
		Since: "2.6.0"},
	{ID: BitField, Name: "bitfield", Arity: -2, Flags: Write | DenyOOM,
		Keys: specs{at(1, RW|Update|Access|VariableFlags)}, Route: Key,
		Since: "3.2.0"},
	{ID: BitFieldRO, Name: "bitfield_ro", Arity: -2, Flags: ReadOnly | Fast | Idempotent,
		Keys: specs{at(1, RO|Access)}, Route: Key,
		Since: "6.0.0"},
	{ID: BitOp, Name: "bitop", Arity: -4, Flags: Write | DenyOOM,
		Keys: specs{at(2, OW|Update), span(3, -1, 1, RO|Access)}, Route: Key,
		Since: "2.6.0"},
	{ID: BitPos, Name: "bitpos", Arity: -3, Flags: ReadOnly | Idempotent, Keys: specs{at(1, RO|Access)}, Route: Key,
		Since: "2.8.7"},
	{ID: GetBit, Name: "getbit", Arity: 3, Flags: ReadOnly | Fast | Idempotent, Keys: specs{at(1, RO|Access)},
		Route: Key,
		Since: "2.2.0"},
	{ID: SetBit, Name: "setbit", Arity: 4, Flags: Write | DenyOOM, Keys: specs{at(1, RW|Access|Update)}, Route: Key,
		Since: "2.2.0"},
}}
