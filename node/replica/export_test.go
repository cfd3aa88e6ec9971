package replica

// Pending returns the hand-overs under way.
func (f *Feeding) Pending() []*HandOver { return f.handOvers }
