package engine

// Forget empties a partition at once.
func (e *Engine) Forget(p uint16) { e.Drop(p) }

// SetCopy says that a partition is a copy of another node's.
func (e *Engine) SetCopy(uint16, bool) {}
