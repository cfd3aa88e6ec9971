package tracking

// tellSteps is how many clients are told in one turn.
const tellSteps = 512

// Turns is a Table that tells what it has queued in turns of its loop, so that others are served in between.
type Turns struct {
	Table
	// Post has the loop call f in its next iteration. It is required.
	Post   func(f func())
	posted bool // a turn will come
}

// Tell tells for one turn. What is left follows in later ones.
func (t *Turns) Tell() {
	t.Go(tellSteps)
	t.TellLater()
}

// TellLater has a later turn tell what is queued, if anything is.
func (t *Turns) TellLater() {
	if t.posted || !t.Busy() {
		return
	}
	t.posted = true
	t.Post(func() {
		t.posted = false
		t.Tell()
	})
}
