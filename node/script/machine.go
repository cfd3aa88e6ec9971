package script

import (
	"errors"
	"fmt"
	"time"

	"github.com/dunlin-cache/dunlin/internal/lua"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// A Host executes the commands of a script.
type Host interface {
	// Call executes a command, and returns its reply in a version of the protocol. Both are valid until the next
	// Call. An error ends the script.
	Call(args [][]byte, v resp.Version) (reply []byte, end error)
	// Look is asked every 10,000 steps. An error ends the script.
	Look() error
	// More charges n more bytes to the node's memory, and reports whether there were that many.
	More(n int64) bool
	// Log writes a line to the node's log; level is one of redis.LOG_DEBUG (0) to LOG_WARNING (3).
	Log(level int, line string)
	// Knows reports whether there is such a command, for redis.acl_check_cmd.
	Knows(args [][]byte) bool
}

const (
	// MachineBytes is about what a Machine takes, with the FreeBytes that a script may take without asking the Host.
	MachineBytes, FreeBytes = 192 << 10, 64 << 10
	// MaxBytes is what a script may take at most.
	MaxBytes = 64 << 20
	// TrialSteps is the budget of steps of a trial: some 100 µs.
	TrialSteps = 40_000
	// noSteps is no budget of steps: Host.Look ends a script that runs for too long.
	noSteps = 1 << 50
)

// A Run says how a Machine executes a script.
type Run struct {
	Script   *Script
	Keys     [][]byte // copied
	Args     [][]byte // copied
	ReadOnly bool     // the script may not write
	Trial    bool     // end with ErrLong what takes more than TrialSteps or FreeBytes
	Host     Host
}

// ErrLong ends a trial that cannot come to its end. The Host's Call and Look may end one with it, too.
var ErrLong = errors.New("the script is too long for a trial")

// A Machine runs scripts, one at a time. It belongs to one goroutine at a time.
type Machine struct {
	state    *lua.State
	host     Host
	version  resp.Version // of the replies that the script gets
	granted  int          // bytes that Host.More gave
	words    [][]byte     // of a command
	text     []byte       // of its words
	readOnly bool
	result   lua.Value
	setup    lua.Value // sets KEYS and ARGV
	answer   lua.Value // has the encoder write the result
	encoder  *encoder
	run      *Run
	begun    time.Time // when the run began, for os.clock
	main     lua.Value
	missing  *lua.Table // the metatable of tables whose missing fields are errors
	library  libraryRoom
}

// NewMachine makes a Machine, of about MachineBytes.
func NewMachine() *Machine {
	m := &Machine{state: lua.NewState()}
	s := m.state
	lua.OpenString(s)
	lua.OpenTable(s)
	lua.OpenMath(s)
	lua.OpenBit(s)
	lua.OpenCJSON(s)
	lua.OpenCMsgpack(s)
	lua.OpenStruct(s)
	m.openOS()
	m.openRedis()
	for _, name := range []string{"print", "getfenv", "setfenv", "newproxy"} {
		s.Globals.SetString(name, lua.Nil)
	}
	s.Globals.SetString("KEYS", lua.TableValue(s.NewTable(0, 0)))
	s.Globals.SetString("ARGV", lua.TableValue(s.NewTable(0, 0)))
	m.protect()
	m.openLibrary()
	m.setup = s.Function(m.prepare)
	m.answer = s.Function(func(c *lua.Call) {
		m.encoder.call = c
		m.encoder.result()
	})
	s.Look = func() error { return m.host.Look() }
	s.More = m.more
	s.Caught = caught
	s.Seal()
	return m
}

// Run executes a script. The error is nil, an *Error, or what the Host has ended the script with. Reply comes next.
func (m *Machine) Run(r Run) error {
	s := m.state
	m.host, m.version, m.granted, m.readOnly, m.result = r.Host, resp.RESP2, 0, r.ReadOnly, lua.Nil
	limits := lua.Limits{Steps: noSteps, Bytes: FreeBytes, Trial: r.Trial}
	if m.run = &r; r.Trial {
		limits.Steps = TrialSteps
	} else {
		m.begun = time.Now()
	}
	s.Reset(limits)
	_, err := s.Call(m.setup)
	var results []lua.Value
	switch {
	case err != nil:
	case r.Script.function == nil:
		results, err = s.Call(m.main)
	default:
		results, err = m.callFunction()
	}
	if err != nil {
		return m.failure(r.Script, err)
	}
	if len(results) > 0 {
		m.result = results[0]
		s.Pin(m.result)
	}
	return nil
}

// prepare sets KEYS and ARGV and loads the script, within its budgets.
func (m *Machine) prepare(*lua.Call) {
	s, r := m.state, m.run
	if r.Script.function != nil {
		m.prepareFunction()
		return
	}
	s.Globals.SetString("KEYS", m.list(r.Keys))
	s.Globals.SetString("ARGV", m.list(r.Args))
	m.main = s.Load(r.Script.proto)
	s.Pin(m.main)
}

func (m *Machine) list(words [][]byte) lua.Value {
	t := m.state.NewTable(len(words), 0)
	for i, word := range words {
		t.SetInt(i+1, m.state.NewString(word))
	}
	return lua.TableValue(t)
}

// End forgets the run.
func (m *Machine) End() {
	m.result, m.main, m.run, m.encoder = lua.Nil, lua.Nil, nil, nil
	m.closeLibrary()
	m.state.Globals.SetString("KEYS", lua.Nil)
	m.state.Globals.SetString("ARGV", lua.Nil)
	m.state.Reset(lua.Limits{Steps: noSteps, Bytes: FreeBytes})
	clear(m.words[:cap(m.words)])
	if m.host = nil; cap(m.text) > FreeBytes {
		m.text = nil
	}
	if cap(m.words) > 1<<10 {
		m.words = nil
	}
}

// ReadOnly reports whether the script that runs may not write.
func (m *Machine) ReadOnly() bool { return m.readOnly }

// Granted is how many bytes the Host has given the script. It takes them back when the run has ended.
func (m *Machine) Granted() int64 { return int64(m.granted) }

// more doubles what a script may take, as long as the Host has memory.
func (m *Machine) more(need int) int {
	n := max(need, FreeBytes+m.granted)
	n = min(n, MaxBytes-FreeBytes-m.granted)
	if n < need || !m.host.More(int64(n)) {
		return 0
	}
	m.granted += n
	return n
}

// An Error is what a script has thrown, as the text of a reply: it begins with a code.
type Error struct{ Text string }

func (e *Error) Error() string { return e.Text }

const errMemory = "ERR the script takes more memory than there is for it"

// failure makes of what ended a script what is answered.
func (m *Machine) failure(s *Script, err error) error {
	var thrown *lua.Error
	if !errors.As(err, &thrown) {
		return err
	}
	switch {
	case thrown.Cause == nil:
	case m.run.Trial && isBudget(thrown.Cause):
		return ErrLong
	case errors.Is(err, lua.ErrMemory):
		return &Error{m.located(errMemory, s, thrown)}
	default:
		var end *Error
		if errors.As(thrown.Cause, &end) {
			return &Error{m.located(end.Text, s, thrown)}
		}
		return thrown.Cause
	}
	return &Error{m.located(thrownText(thrown), s, thrown)}
}

// thrownText is the text of an error that a script has thrown.
func thrownText(e *lua.Error) string {
	if text, ok := errorText(e.Value); ok {
		return text
	}
	if text, ok := e.Value.ToString(); ok {
		return "ERR " + text
	}
	return "ERR unknown error"
}

// isBudget reports whether a cause is one that ends trials only, or later than a trial.
func isBudget(cause error) bool {
	return errors.Is(cause, lua.ErrMemory) || errors.Is(cause, lua.ErrSteps) || errors.Is(cause, lua.ErrTrial)
}

// located appends where the script was.
func (m *Machine) located(text string, s *Script, e *lua.Error) string {
	if text = errorLine(text); e.Chunk == "" {
		return text
	}
	return fmt.Sprintf("%s script: %s, on %s:%d.", text, s.SHA, e.Chunk, e.Line)
}

// errorText is the text of an error that is a table, as redis.call throws them.
func errorText(v lua.Value) (text string, ok bool) {
	if t, is := v.AsTable(); is {
		return t.GetString("err").ToString()
	}
	return "", false
}

// caught has pcall return the text of an error of redis.call, as in Redis 7.
func caught(v lua.Value) lua.Value {
	if text, ok := errorText(v); ok {
		return lua.String(text)
	}
	return v
}
