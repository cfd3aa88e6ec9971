package node

// executeAside executes a request of a client that may not want the reply.
func (r *request) executeAside(s *step) {
	start := len(r.out)
	r.conn.state.Begin()
	s.look(r.conn)
	r.execute(s)
	r.endAside(start)
}

// endAside ends a request that executeAside began, unless a goroutine is going to answer it. Its reply begins at start.
func (r *request) endAside(start int) {
	cn := r.conn
	if !cn.state.Begun() || cn.answering {
		return
	}
	if cn.state.Muted() {
		r.takeBack(start)
	}
	cn.state.End(true)
}

// failProtocol answers what is no request.
func (r *request) failProtocol() {
	r.cmd = nil
	start := len(r.out)
	r.fail(r.conn.parser.Err())
	if r.conn.state.Muted() {
		r.takeBack(start)
	}
}
