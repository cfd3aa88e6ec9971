package node

// nothingExpires reports whether the clock by which keys expire may step, because no time that was
// reckoned by it is stored or on its way: neither in a record, nor in a large value that is written
// or received, nor in what is left to send of a partition that is being handed over.
func (n *Node) nothingExpires() bool {
	n.tableMu.Lock()
	moving := len(n.handOvers) > 0
	n.tableMu.Unlock()
	st := n.engine.Stats()
	return !moving && st.Volatile == 0 && st.Staged == 0
}
