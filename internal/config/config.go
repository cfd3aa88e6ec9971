package config

import (
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

const defaultMaxClients = 10000

// DefaultDatabases is how many databases there are unless Options say otherwise.
const DefaultDatabases = 16

// Options are the initial values of parameters, and the hooks by which others take effect.
type Options struct {
	Bind       string
	Port       int
	MaxClients int    // 0: 10000
	Databases  int    // 0: DefaultDatabases
	Policy     string // Redis's or Dunlin's name of the eviction policy; "": allkeys-lru

	// Hooks run in the goroutine of the CONFIG command and must not block a loop. CONFIG SET
	// refuses the parameter of a setter that is nil.
	MaxMemory    func() int64            // the limit that was set last, in bytes; nil: 0
	SetMaxMemory func(bytes int64) error // CONFIG SET maxmemory
	// CheckMaxMemory returns the error with which SetMaxMemory would refuse; nil: it refuses nothing
	// that can be foreseen.
	CheckMaxMemory func(bytes int64) error
	SetPolicy      func(name string) error // CONFIG SET maxmemory-policy, with Dunlin's name
	ResetStats     func()                  // CONFIG RESETSTAT; nil: nothing to reset
	Changed        func(c *Config)         // called when a value may have changed, and by New; may be nil
	// SetCluster makes all members apply parameters of the cluster, and returns when they have. The
	// names and values are those that ApplyCluster then gets. It may take seconds: where it is set,
	// CONFIG SET must not run on a loop. nil: there is no cluster, and the parameters are applied
	// here.
	SetCluster func(changes map[string]string) error
}

// Config has the values of a process's parameters. They are rarely read (by a CONFIG command, an
// accept, a timer), so a plain lock suffices.
type Config struct {
	o Options

	initial []string // in the order of parameters

	mu     sync.Mutex
	values []string // likewise
}

// New returns the initial parameters.
func New(o Options) *Config {
	if o.MaxClients == 0 {
		o.MaxClients = defaultMaxClients
	}
	if o.Databases == 0 {
		o.Databases = DefaultDatabases
	}
	c := &Config{o: o, values: make([]string, len(parameters))}
	for i := range parameters {
		c.values[i] = parameters[i].initial
	}
	c.set("bind", o.Bind)
	c.set("port", strconv.Itoa(o.Port))
	c.set("databases", strconv.Itoa(o.Databases))
	c.set("maxclients", strconv.Itoa(o.MaxClients))
	c.set("maxmemory-policy", redisPolicy(o.Policy))
	c.initial = slices.Clone(c.values)
	c.changed()
	return c
}

// Databases returns how many databases there are. It never changes.
func (c *Config) Databases() int { return c.o.Databases }

// MaxClients returns the limit of client connections.
func (c *Config) MaxClients() int { return int(c.number("maxclients")) }

// IdleTimeout returns how long a silent connection may stay; 0: for ever.
func (c *Config) IdleTimeout() time.Duration {
	return time.Duration(c.number("timeout")) * time.Second
}

// SlowerThan returns the least duration, in microseconds, of a request in the slow log; if it is
// negative, no request is slow.
func (c *Config) SlowerThan() int64 { return c.number("slowlog-log-slower-than") }

// SlowLogLen returns the number of entries that the slow log keeps.
func (c *Config) SlowLogLen() int { return int(c.number("slowlog-max-len")) }

// EncodingLimit returns one of the parameters that say how Redis keeps small values, by its name.
func (c *Config) EncodingLimit(name string) int { return int(min(c.number(name), math.MaxInt32)) }

// KeyspaceEvents returns the classes of keyspace notifications.
func (c *Config) KeyspaceEvents() keyevent.Class {
	classes, _ := keyevent.Parse(c.get("notify-keyspace-events"))
	return classes
}

func (c *Config) get(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.values[parameterIndex(name)]
}

func (c *Config) set(name, value string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.values[parameterIndex(name)] = value
}

// number reads a parameter of kind integer; those always hold a number.
func (c *Config) number(name string) int64 {
	n, err := strconv.ParseInt(c.get(name), 10, 64)
	if err != nil {
		panic("BUG: parameter " + name + " is not a number")
	}
	return n
}

// value returns what CONFIG GET shows.
func (c *Config) value(p *parameter) string {
	if p.name != "maxmemory" {
		return c.get(p.name)
	}
	if c.o.MaxMemory == nil {
		return "0"
	}
	return strconv.FormatInt(c.o.MaxMemory(), 10)
}

// AppendGet answers CONFIG GET pattern...: each name that matches once, in the order of the table. A
// parameter with two names may come under both. args is the whole request.
func (c *Config) AppendGet(dst []byte, v resp.Version, args [][]byte) []byte {
	return appendValues(dst, v, args[2:], c.value)
}

func appendValues(dst []byte, v resp.Version, texts [][]byte, value func(*parameter) string) []byte {
	patterns, ok := lowerPatterns(texts)
	if !ok {
		return resp.AppendError(dst, errManyPatterns)
	}
	var names, values []string
	for i := range parameters {
		if p := &parameters[i]; !p.hidden {
			for names = p.appendMatching(names, patterns); len(values) < len(names); {
				values = append(values, value(p))
			}
		}
	}
	dst = resp.AppendMap(dst, v, len(names))
	for i, name := range names {
		dst = resp.AppendBulkStrings(dst, name, values[i])
	}
	return dst
}

// change is one checked "name value" of CONFIG SET.
type change struct {
	p        *parameter
	old, new string
}

// Set answers CONFIG SET name value...: all or nothing. It checks everything first; if a hook then
// fails, it undoes the changes already applied. args is the whole request. Parameters of the
// cluster come last, by SetCluster.
func (c *Config) Set(dst []byte, args [][]byte) []byte {
	return c.setAll(dst, args, c.o.SetCluster)
}

// SetHere is Set without the parameters of the cluster, which it only checks, because another node
// sets them.
func (c *Config) SetHere(dst []byte, args [][]byte) []byte {
	if c.o.SetCluster == nil {
		return c.Set(dst, args)
	}
	return c.setAll(dst, args, func(map[string]string) error { return nil })
}

func (c *Config) setAll(dst []byte, args [][]byte, setCluster func(map[string]string) error) []byte {
	pairs := args[2:]
	if len(pairs)%2 != 0 {
		return resp.AppendError(dst, command.ErrSyntax)
	}
	changes, refusal := c.check(pairs)
	if refusal != "" {
		return resp.AppendError(dst, refusal)
	}
	here, ofCluster := split(changes, setCluster != nil)
	for i := range here {
		to := &here[i]
		if err := c.apply(to.p, to.new); err != nil {
			c.takeBack(here[:i])
			return resp.AppendError(dst, setFailed(to.p.name, err.Error()))
		}
	}
	if len(ofCluster) == 0 {
		return resp.AppendOK(dst)
	}
	if err := setCluster(clusterValues(ofCluster)); err != nil {
		c.takeBack(here)
		return resp.AppendError(dst, setFailed(ofCluster[0].p.name, err.Error()))
	}
	return resp.AppendOK(dst)
}

// Check returns why Set would refuse a request at once, "" if it would not. A hook may still fail.
func (c *Config) Check(args [][]byte) (refusal string) {
	if len(args)%2 != 0 {
		return command.ErrSyntax
	}
	_, refusal = c.check(args[2:])
	return refusal
}

// takeBack undoes changes that were applied, as far as it can. The old values were accepted before.
func (c *Config) takeBack(done []change) {
	for _, d := range slices.Backward(done) {
		_ = c.apply(d.p, d.old)
	}
}

// check refuses unknown names first, as Redis does, and then bad values.
func (c *Config) check(pairs [][]byte) (changes []change, refusal string) {
	for i := 0; i < len(pairs); i += 2 {
		p := findParameter(pairs[i])
		if p == nil {
			return nil, "ERR Unknown option or number of arguments for CONFIG SET - '" + command.Cut(pairs[i]) + "'"
		}
		if slices.ContainsFunc(changes, func(c change) bool { return c.p == p }) {
			return nil, setFailed(p.name, "duplicate parameter")
		}
		if c.immutable(p) {
			return nil, setFailed(p.name, errImmutable)
		}
		changes = append(changes, change{p: p, old: c.value(p), new: string(pairs[i+1])})
	}
	for i := range changes {
		to := &changes[i]
		value, problem := to.p.check(to.new, to.old)
		if problem != "" {
			return nil, setFailed(to.p.name, problem)
		}
		to.new = value
		if err := c.foresee(to); err != nil {
			return nil, setFailed(to.p.name, err.Error())
		}
	}
	return changes, ""
}

// foresee returns the error with which apply would fail, as far as that is known.
func (c *Config) foresee(to *change) error {
	if to.p.kind == pinned {
		databases, err := ring.ParsePinned(to.new)
		if err != nil {
			return err
		}
		return databases.CheckSelectable(c.o.Databases)
	}
	if to.p.name != "maxmemory" || c.o.CheckMaxMemory == nil {
		return nil
	}
	n, err := strconv.ParseInt(to.new, 10, 64)
	if err != nil {
		return err
	}
	return c.o.CheckMaxMemory(n)
}

// immutable reports whether CONFIG SET refuses a parameter: some can change only where there is a
// hook.
func (c *Config) immutable(p *parameter) bool {
	switch p.name {
	case "maxmemory":
		return c.o.SetMaxMemory == nil
	case "maxmemory-policy":
		return c.o.SetPolicy == nil
	}
	return p.kind == static
}

// apply calls the hook first: a value that the hook refuses is not stored.
func (c *Config) apply(p *parameter, value string) error {
	switch p.name {
	case "maxmemory":
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return err
		}
		return c.o.SetMaxMemory(n) // not stored: MaxMemory returns the present value
	case "maxmemory-policy":
		name, _ := PolicyName(value)
		if err := c.o.SetPolicy(name); err != nil {
			return err
		}
	}
	c.set(p.name, value)
	c.changed()
	return nil
}

func (c *Config) changed() {
	if c.o.Changed != nil {
		c.o.Changed(c)
	}
}

func setFailed(name, problem string) string {
	return "ERR CONFIG SET failed (possibly related to argument '" + name + "') - " + problem
}

// ResetStat answers CONFIG RESETSTAT.
func (c *Config) ResetStat(dst []byte) []byte {
	if c.o.ResetStats != nil {
		c.o.ResetStats()
	}
	return resp.AppendOK(dst)
}
