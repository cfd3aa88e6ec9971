package session

import (
	"path"
	"slices"
	"strconv"
	"sync"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

const defaultMaxClients = 10000

// config holds the values of the parameters, in the order of that table. They
// are this process's alone, and its end forgets what CONFIG SET changed.
// Reading is rare (a CONFIG command, an accept, a timer), so a plain lock does.
type config struct {
	mu     sync.Mutex
	values []string
}

func (c *config) init(o ServerOptions) {
	c.values = make([]string, len(parameters))
	for i := range parameters {
		c.values[i] = parameters[i].initial
	}
	c.set("bind", o.Bind)
	c.set("port", strconv.Itoa(o.Port))
	c.set("maxclients", strconv.Itoa(o.MaxClients))
	c.set("maxmemory-policy", redisPolicy(o.Policy))
}

func (c *config) get(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.values[parameterIndex(name)]
}

func (c *config) set(name, value string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.values[parameterIndex(name)] = value
}

// number reads a parameter of kind integer; those always hold a number.
func (c *config) number(name string) int64 {
	n, err := strconv.ParseInt(c.get(name), 10, 64)
	if err != nil {
		panic("BUG: parameter " + name + " is not a number")
	}
	return n
}

// parameterValue is what CONFIG GET shows.
func (s *Server) parameterValue(p *parameter) string {
	if p.name == "maxmemory" {
		return strconv.FormatInt(s.maxMemory(), 10)
	}
	return s.config.get(p.name)
}

// configGet answers CONFIG GET pattern...: each parameter once, in the order
// of the table.
func (s *Server) configGet(st *State, args [][]byte, dst []byte) ([]byte, Action) {
	return s.appendConfig(dst, st.Version, args[2:], s.parameterValue), ActionNone
}

func (s *Server) appendConfig(dst []byte, v resp.Version, patterns [][]byte, value func(*parameter) string) []byte {
	var wanted []*parameter
	for i := range parameters {
		if p := &parameters[i]; !p.hidden && matchesAny(patterns, p.name) {
			wanted = append(wanted, p)
		}
	}
	dst = resp.AppendMap(dst, v, len(wanted))
	for _, p := range wanted {
		dst = appendPair(dst, p.name, value(p))
	}
	return dst
}

// matchesAny compares a lower-case name with glob patterns in any case. What
// path.Match finds malformed matches nothing.
func matchesAny(patterns [][]byte, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern []byte) bool {
		match, err := path.Match(lower(pattern), name)
		return err == nil && match
	})
}

// change is one checked "name value" of CONFIG SET.
type change struct {
	p        *parameter
	old, new string
}

// configSet answers CONFIG SET name value...: all or nothing. Everything is
// checked first; if a hook then fails, what was applied is taken back.
func (s *Server) configSet(_ *State, args [][]byte, dst []byte) ([]byte, Action) {
	pairs := args[2:]
	if len(pairs)%2 != 0 {
		return resp.AppendError(dst, errSyntax), ActionNone
	}
	changes, refusal := s.checkChanges(pairs)
	if refusal != "" {
		return resp.AppendError(dst, refusal), ActionNone
	}
	for i, c := range changes {
		err := s.apply(c.p, c.new)
		if err == nil {
			continue
		}
		for _, done := range slices.Backward(changes[:i]) {
			// Best effort: the old value was accepted before.
			_ = s.apply(done.p, done.old)
		}
		return resp.AppendError(dst, setFailed(c.p.name, err.Error())), ActionNone
	}
	return appendOK(dst), ActionNone
}

// checkChanges first refuses names that are not there, as Redis does, then
// values.
func (s *Server) checkChanges(pairs [][]byte) (changes []change, refusal string) {
	for i := 0; i < len(pairs); i += 2 {
		p := findParameter(pairs[i])
		if p == nil {
			return nil, "ERR Unknown option or number of arguments for CONFIG SET - '" + cut(pairs[i]) + "'"
		}
		if slices.ContainsFunc(changes, func(c change) bool { return c.p == p }) {
			return nil, setFailed(p.name, "duplicate parameter")
		}
		if s.immutable(p) {
			return nil, setFailed(p.name, errStaticConfig)
		}
		changes = append(changes, change{p: p, old: s.parameterValue(p), new: string(pairs[i+1])})
	}
	for i := range changes {
		c := &changes[i]
		value, problem := c.p.check(c.new)
		if problem != "" {
			return nil, setFailed(c.p.name, problem)
		}
		c.new = value
	}
	return changes, ""
}

// immutable: some parameters can be changed only where there is a hook.
func (s *Server) immutable(p *parameter) bool {
	switch p.name {
	case "maxmemory":
		return s.o.SetMaxMemory == nil
	case "maxmemory-policy":
		return s.o.SetPolicy == nil
	}
	return p.kind == static
}

// apply calls the hook first: what it refuses is not stored.
func (s *Server) apply(p *parameter, value string) error {
	switch p.name {
	case "maxmemory":
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return err
		}
		return s.o.SetMaxMemory(n) // not stored: MaxMemory tells the present value
	case "maxmemory-policy":
		name, _ := PolicyName(value)
		if err := s.o.SetPolicy(name); err != nil {
			return err
		}
	}
	s.config.set(p.name, value)
	s.applySlowLog()
	return nil
}

// applySlowLog tells the slow log its settings.
func (s *Server) applySlowLog() {
	s.slow.threshold.Store(s.config.number("slowlog-log-slower-than"))
	s.slow.setLen(int(s.config.number("slowlog-max-len")))
	if s.o.SlowLogSet != nil {
		s.o.SlowLogSet(&s.slow)
	}
}

func setFailed(name, problem string) string {
	return "ERR CONFIG SET failed (possibly related to argument '" + name + "') - " + problem
}

// configResetStat answers CONFIG RESETSTAT.
func (s *Server) configResetStat(_ *State, _ [][]byte, dst []byte) ([]byte, Action) {
	if s.o.ResetStats != nil {
		s.o.ResetStats()
	}
	return appendOK(dst), ActionNone
}
