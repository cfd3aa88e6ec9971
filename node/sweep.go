package node

// Expired keys disappear when they are looked up. Those that nobody asks for
// again are found by the engine's sweep, which has a goroutine of its own: a loop
// has commands to answer.

// sweep runs until the node ends.
func (n *Node) sweep() {
	n.engine.KeepSwept(n.ctx.Done(), n.cfg.Group.UnixMilli)
}
