package config

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/glob"
	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// kind says which values a parameter takes.
type kind uint8

const (
	static  kind = iota // can be read only
	integer             // from min to max
	memory              // bytes, with Redis's units
	choice              // one of choices
	policy              // one of choices, or Dunlin's name for some of them
	output              // limits of clients' outputs, for each class
	events              // classes of keyspace notifications
	pinned              // databases that may be pinned
)

// errImmutable is Redis's text for a parameter that cannot change while the process runs.
const errImmutable = "can't set immutable config"

// maxSlowLog bounds slowlog-max-len: an entry may take 4 KiB.
const maxSlowLog = 10000

// parameter is one name of CONFIG GET and SET.
type parameter struct {
	name     string
	kind     kind
	initial  string
	min, max int64
	choices  []string
	nodes    bool // takes effect in nodes: a proxy asks them for it, and sets it there
	cluster  bool // holds for all members alike, and survives them: see cluster.go. nodes is set, too
	hidden   bool // known, so that it can be refused, but never shown

	old string // another name, which Redis used first; "": none
}

// parameters are those that clients and tools ask for, by name. A parameter that has only one
// possible value here, because Dunlin writes no disk, is a choice of
// one: CONFIG SET accepts that value and refuses every other. The limits of encodings only say what
// OBJECT ENCODING answers.
var parameters = []parameter{
	{name: "appendonly", kind: choice, initial: "no", choices: []string{"no"}},
	{name: "bind", kind: static},
	{name: "client-output-buffer-limit", kind: output, initial: initialOutput, nodes: true, cluster: true},
	{name: "cluster-enabled", kind: static, initial: "no"},
	{name: "databases", kind: static, initial: strconv.Itoa(DefaultDatabases)},
	encodingLimit("hash-max-listpack-entries", "hash-max-ziplist-entries", integer, "512"),
	encodingLimit("hash-max-listpack-value", "hash-max-ziplist-value", memory, "64"),
	{name: "latency-monitor-threshold", kind: integer, initial: "0"},
	{name: "latency-tracking", kind: choice, initial: "yes", choices: []string{"yes"}},
	{name: "latency-tracking-info-percentiles", kind: choice, initial: "50 99 99.9", choices: []string{"50 99 99.9"}},
	{name: "list-compress-depth", kind: integer, initial: "0", max: math.MaxInt32, nodes: true, cluster: true},
	{
		name: "list-max-listpack-size", old: "list-max-ziplist-size", kind: integer, initial: "-2",
		min: math.MinInt32, max: math.MaxInt32, nodes: true, cluster: true,
	},
	{name: "maxclients", kind: integer, initial: strconv.Itoa(defaultMaxClients), min: 1, max: math.MaxUint32},
	{name: "maxmemory", kind: memory, initial: "0", nodes: true},
	{name: "maxmemory-policy", kind: policy, initial: defaultPolicy, choices: policyChoices(), nodes: true, cluster: true},
	{name: "notify-keyspace-events", kind: events, nodes: true, cluster: true},
	{name: "pinned-databases", kind: pinned, nodes: true, cluster: true},
	{name: "port", kind: static},
	{name: "proto-max-bulk-len", kind: static, initial: strconv.Itoa(resp.DefaultLimits.MaxBulk)},
	{name: "replica-read-only", kind: choice, initial: "yes", choices: []string{"yes"}},
	{name: "requirepass", kind: static, hidden: true},
	{name: "save", kind: choice, choices: []string{""}},
	encodingLimit("set-max-intset-entries", "", integer, "512"),
	encodingLimit("set-max-listpack-entries", "", integer, "128"),
	encodingLimit("set-max-listpack-value", "", integer, "64"),
	{name: "slave-read-only", kind: choice, initial: "yes", choices: []string{"yes"}},
	{name: "slowlog-log-slower-than", kind: integer, initial: "10000", min: -1, max: math.MaxInt64, nodes: true, cluster: true},
	{name: "slowlog-max-len", kind: integer, initial: "128", max: maxSlowLog, nodes: true, cluster: true},
	{name: "timeout", kind: integer, initial: "0", max: math.MaxInt32, nodes: true, cluster: true},
	encodingLimit("zset-max-listpack-entries", "zset-max-ziplist-entries", integer, "128"),
	encodingLimit("zset-max-listpack-value", "zset-max-ziplist-value", memory, "64"),
}

// encodingLimit is a parameter that says up to where Redis keeps a value in its small form.
func encodingLimit(name, old string, k kind, initial string) parameter {
	return parameter{name: name, old: old, kind: k, initial: initial, max: math.MaxInt64, nodes: true, cluster: true}
}

func parameterIndex(name string) int {
	for i := range parameters {
		if parameters[i].name == name {
			return i
		}
	}
	panic("BUG: no parameter " + name)
}

// names are the parameter's one or two names.
func (p *parameter) names() []string {
	if p.old == "" {
		return []string{p.name}
	}
	return []string{p.name, p.old}
}

// findParameter returns the parameter of a name in any case, or nil.
func findParameter(name []byte) *parameter {
	for i := range parameters {
		if p := &parameters[i]; command.EqualFold(name, p.name) || p.old != "" && command.EqualFold(name, p.old) {
			return p
		}
	}
	return nil
}

// appendMatching appends those of the parameter's names, which are in lower case, that match one of the
// glob patterns, which are in lower case too.
func (p *parameter) appendMatching(names []string, patterns []*glob.Pattern) []string {
	for _, name := range p.names() {
		matches := func(pattern *glob.Pattern) bool { return pattern.Match([]byte(name)) }
		if slices.ContainsFunc(patterns, matches) {
			names = append(names, name)
		}
	}
	return names
}

// maxMatching bounds the work of one CONFIG GET, in units of glob.Cost, and maxPatternBytes its
// patterns. These take less than 1 ms each, to match and to compile.
const maxMatching, maxPatternBytes = 16 << 10, 32 << 10

const errManyPatterns = "ERR CONFIG GET has too many patterns, or too long ones: ask for fewer at a time"

var (
	// allNames are the names of all parameters.
	allNames = func() (names []string) {
		for i := range parameters {
			names = append(names, parameters[i].names()...)
		}
		return names
	}()
	longestName = slices.MaxFunc(allNames, func(a, b string) int { return len(a) - len(b) })
)

// lowerPatterns returns the patterns of a CONFIG GET in lower case. It reports false if they are more
// than a loop can match with the names of all parameters.
func lowerPatterns(patterns [][]byte) (lower []*glob.Pattern, ok bool) {
	cost, size := 0, 0
	for _, text := range patterns {
		if size += len(text); size > maxPatternBytes {
			return nil, false
		}
		pattern, err := glob.Compile(bytes.ToLower(text))
		if err != nil {
			return nil, false
		}
		if cost += len(allNames) * pattern.Cost([]byte(longestName)); cost > maxMatching {
			return nil, false
		}
		lower = append(lower, pattern)
	}
	return lower, true
}

// check returns the value in the form in which it is stored, or the problem with it. present is the value
// that it changes.
func (p *parameter) check(value, present string) (stored, problem string) {
	switch p.kind {
	case integer:
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return "", "argument couldn't be parsed into an integer"
		}
		if n < p.min || n > p.max {
			return "", "argument must be between " + strconv.FormatInt(p.min, 10) + " and " +
				strconv.FormatInt(p.max, 10) + " inclusive"
		}
		return strconv.FormatInt(n, 10), ""
	case memory:
		n, ok := parseMemory(value)
		if !ok {
			return "", "argument must be a memory value"
		}
		return strconv.FormatInt(n, 10), ""
	case policy:
		if _, known := PolicyName(value); known {
			return redisPolicy(value), ""
		}
		return "", p.wantsChoice()
	case choice:
		for _, c := range p.choices {
			if strings.EqualFold(c, value) {
				return c, ""
			}
		}
		return "", p.wantsChoice()
	case output:
		return checkOutput(value, present)
	case pinned:
		databases, err := ring.ParsePinned(value)
		if err != nil {
			return "", err.Error()
		}
		return databases.String(), ""
	case events:
		c, ok := keyevent.Parse(value)
		if !ok {
			return "", "Invalid event class character. Use 'Ag$lshzxeKEtmdn'."
		}
		return c.String(), ""
	}
	return "", errImmutable
}

func (p *parameter) wantsChoice() string {
	return "argument(s) must be one of the following: " + strings.Join(p.choices, ", ")
}

// parseMemory parses bytes with the units of Redis: k, m, g are decimal, kb, mb, gb binary.
func parseMemory(value string) (bytes int64, ok bool) {
	digits := strings.TrimRight(strings.ToLower(value), "bkmg")
	unit := int64(1)
	switch strings.ToLower(value[len(digits):]) {
	case "", "b":
	case "k":
		unit = 1e3
	case "kb":
		unit = 1 << 10
	case "m":
		unit = 1e6
	case "mb":
		unit = 1 << 20
	case "g":
		unit = 1e9
	case "gb":
		unit = 1 << 30
	default:
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/unit {
		return 0, false
	}
	return n * unit, true
}
