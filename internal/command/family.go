package command

// Family is a coarse kind of command, for figures that cannot have a row for each command.
type Family uint8

const (
	FamilyOther Family = iota // on no keys
	FamilyRead                // of one key
	FamilyWrite               // of one key
	FamilyMulti               // on several keys
	FamilyWide                // on all nodes
	FamilyHeavy               // long work on values; the node says which commands
	NumFamilies
)

// String returns the family's name in figures.
func (f Family) String() string {
	return [NumFamilies]string{"other", "read", "write", "multi", "wide", "heavy"}[f]
}

// Family derives the family from where the keys are and what the command does with them. It never
// returns FamilyHeavy.
func (c *Command) Family() Family {
	switch {
	case c.Route == AllNodes:
		return FamilyWide
	case c.Flags&MovableKeys != 0 || c.Last != c.First:
		return FamilyMulti
	case c.First == 0:
		return FamilyOther
	case c.Flags&Write != 0:
		return FamilyWrite
	}
	return FamilyRead
}
