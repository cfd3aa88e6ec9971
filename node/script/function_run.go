package script

import (
	"errors"
	"strings"

	"github.com/dunlin-cache/dunlin/internal/lua"
)

// A library is executed when it is loaded, to learn which functions it registers, and again in each call of one of
// them, which so finds the variables of the library as its code has set them, whatever calls before have made of them.
// Its global variables are in a table of their own, env, which is empty and read-only. What it reads there comes from
// elsewhere:
//
//	code of the library  env ─▶ loading: redis.register_function, redis.log and constants
//	function             env ─▶ calling: redis ─▶ the globals of scripts, without KEYS and ARGV
type libraryRoom struct {
	env     *lua.Table
	meta    *lua.Table // of env
	loading *lua.Table
	calling *lua.Table

	found  *FunctionLibrary // not nil: what a library registers is noted here
	wanted *Function        // not nil: its callback is looked for
	// callback is that of wanted, params are the keys and the arguments.
	callback lua.Value
	params   [2]lua.Value
}

// loadSteps is how many steps the code of a library may take: on a machine that does little else, a few hundred
// milliseconds. It has only to register functions.
const loadSteps = 50_000_000

func (m *Machine) openLibrary() {
	s, room := m.state, &m.library
	redis, _ := s.Globals.GetString("redis").AsTable()
	api := func(fields int) *lua.Table { return s.NewTable(0, fields) }

	load := api(8)
	s.Register(load, map[string]lua.HostFunction{
		"register_function": m.register,
		"log": func(c *lua.Call) {
			if room.wanted == nil { // otherwise each call of a function would log what its library logs
				m.log(c)
			}
		},
	})
	call := api(32)
	for key, v, _ := redis.Next(lua.Nil); !key.IsNil(); key, v, _ = redis.Next(key) {
		name, _ := key.AsString()
		if strings.HasPrefix(name, "LOG_") || strings.HasPrefix(name, "REDIS_") {
			load.SetString(name, v)
		}
		switch name {
		case "replicate_commands", "breakpoint", "debug": // scripts of EVAL have them
		default:
			call.SetString(name, v)
		}
	}
	load.SetMetatable(m.missing)
	room.loading, room.calling, room.env, room.meta = api(1), api(1), api(0), api(1)
	room.loading.SetString("redis", lua.TableValue(load))
	room.loading.SetMetatable(m.missing)
	room.calling.SetString("redis", lua.TableValue(call))
	onward := api(1)
	onward.SetString("__index", lua.TableValue(s.Globals))
	room.calling.SetMetatable(onward)
	room.env.SetMetatable(room.meta)
	for _, t := range []*lua.Table{load, call, onward, room.loading, room.calling, room.env, room.meta} {
		t.SetReadOnly(true)
	}
	s.Registry().SetString("library", lua.TableValue(room.env))
	m.closeLibrary()
}

// show sets what code in env sees.
func (r *libraryRoom) show(t *lua.Table) { r.meta.SetString("__index", lua.TableValue(t)) }

// closeLibrary forgets what was registered.
func (m *Machine) closeLibrary() {
	r := &m.library
	r.found, r.wanted, r.callback, r.params = nil, nil, lua.Nil, [2]lua.Value{}
	r.show(r.loading)
}

// prepareFunction makes the parameters of a function and loads its library.
func (m *Machine) prepareFunction() {
	s, r := m.state, m.run
	s.Globals.SetString("KEYS", lua.Nil)
	s.Globals.SetString("ARGV", lua.Nil)
	for i, words := range [][][]byte{r.Keys, r.Args} {
		m.library.params[i] = m.list(words)
		s.Pin(m.library.params[i])
	}
	m.library.show(m.library.loading)
	m.main = s.LoadIn(r.Script.proto, m.library.env)
	s.Pin(m.main)
}

// callFunction executes the library of a function, and then the function.
func (m *Machine) callFunction() (results []lua.Value, err error) {
	s, r := m.state, &m.library
	r.wanted = m.run.Script.function
	_, err = s.Call(m.main)
	if r.wanted = nil; err != nil {
		return nil, err
	}
	r.show(r.calling)
	return s.Call(r.callback, r.params[:]...)
}

// Register executes the code of a library, which must be compiled, and adds the functions that it registers. The error
// is an *Error, or what the Host has ended the library with. End comes next.
func (m *Machine) Register(l *FunctionLibrary, h Host) error {
	s := m.state
	m.host, m.granted = h, 0
	s.Reset(lua.Limits{Steps: loadSteps, Bytes: FreeBytes})
	m.run = &Run{Script: &Script{proto: l.proto, function: &Function{}}} // none of them is called
	_, err := s.Call(m.setup)
	if err == nil {
		m.library.found = l
		_, err = s.Call(m.main)
		m.library.found = nil
	}
	switch {
	case err != nil:
		return registering(err)
	case len(l.Functions) == 0:
		return &Error{errNoFunctions.Error()}
	}
	return nil
}

// registering makes of what has ended the code of a library what is answered.
func registering(err error) error {
	var thrown *lua.Error
	if !errors.As(err, &thrown) {
		return err
	}
	text := ""
	switch {
	case thrown.Cause == nil:
		text = thrownText(thrown)
	case errors.Is(err, lua.ErrSteps):
		text = "ERR FUNCTION LOAD timeout"
	case errors.Is(err, lua.ErrMemory):
		text = errMemory
	default:
		return thrown.Cause
	}
	return &Error{cut("ERR Error registering functions: " + text)}
}

// Texts of redis.register_function.
const (
	errRegisterArgs    = "ERR wrong number of arguments to redis.register_function"
	errRegisterOutside = "ERR redis.register_function can only be called on FUNCTION LOAD command"
	errRegisterTable   = "ERR calling redis.register_function with a single argument is only applicable to Lua table (representing named arguments)."
	errRegisterFirst   = "ERR first argument to redis.register_function must be a string"
	errRegisterSecond  = "ERR second argument to redis.register_function must be a function"
	errRegisterKey     = "ERR named argument key given to redis.register_function is not a string"
	errRegisterName    = "ERR function_name argument given to redis.register_function must be a string"
	errRegisterText    = "ERR description argument given to redis.register_function must be a string"
	errRegisterCall    = "ERR callback argument given to redis.register_function must be a function"
	errRegisterFlags   = "ERR flags argument to redis.register_function must be a table representing function flags"
	errRegisterFlag    = "ERR unknown flag given"
	errRegisterUnknown = "ERR unknown argument given to redis.register_function"
	errRegisterNoName  = "ERR redis.register_function must get a function name argument"
	errRegisterNoCall  = "ERR redis.register_function must get a callback argument"
	errRegisterTwice   = "ERR Function already exists in the library"
	errRegisterLong    = "ERR the name of a function has at most 256 bytes, and its description 4096"
	errRegisterMany    = "ERR a library has at most 2048 functions"
)

// register: redis.register_function(name, callback) or redis.register_function{function_name=…, callback=…, …}
func (m *Machine) register(c *lua.Call) {
	room := &m.library
	if room.found == nil && room.wanted == nil {
		throwf(c, errRegisterOutside)
	}
	if room.wanted != nil && c.Len() == 2 { // it passed the checks when the library was loaded
		if name, _ := c.Arg(1).ToString(); name == room.wanted.Name {
			m.foundCallback(c.Arg(2))
		}
		return
	}
	var f Function
	var callback lua.Value
	switch c.Len() {
	case 1:
		callback = f.readNamed(c)
	case 2:
		name, ok := c.Arg(1).ToString()
		if !ok {
			throwf(c, errRegisterFirst)
		}
		if f.Name, callback = name, c.Arg(2); !callback.IsFunction() {
			throwf(c, errRegisterSecond)
		}
	default:
		throwf(c, errRegisterArgs)
	}
	c.Charge(len(f.Name) + len(f.Description) + functionBytes)
	c.Spend(stepsOfRegister)
	switch {
	case len(f.Name) > maxName || len(f.Description) > maxDescription:
		throwf(c, errRegisterLong)
	case !isName(f.Name):
		throwf(c, "ERR "+badName)
	}
	if room.found == nil {
		if f.Name == room.wanted.Name {
			m.foundCallback(callback)
		}
		return
	}
	f.Name, f.Description = strings.Clone(f.Name), strings.Clone(f.Description)
	if len(room.found.Functions) == maxFunctions {
		throwf(c, errRegisterMany)
	}
	if !room.found.insert(&f) {
		throwf(c, errRegisterTwice)
	}
}

// foundCallback notes the callback of the function that is called.
func (m *Machine) foundCallback(f lua.Value) {
	m.library.callback = f
	m.state.Pin(f)
}

const (
	// functionBytes is about what a registered function takes, and stepsOfRegister what it costs to register it.
	functionBytes, stepsOfRegister = 400, 100
	// stepsOfField is what it costs to read a named argument or a flag.
	stepsOfField = 30
)

// readNamed reads a table of arguments, and returns the callback.
func (f *Function) readNamed(c *lua.Call) (callback lua.Value) {
	t, ok := c.Arg(1).AsTable()
	if !ok {
		throwf(c, errRegisterTable)
	}
	named := false
	for key, v, _ := t.Next(lua.Nil); !key.IsNil(); key, v, _ = t.Next(key) {
		c.Spend(stepsOfField)
		name, ok := key.ToString()
		if !ok {
			throwf(c, errRegisterKey)
		}
		switch strings.ToLower(name[:min(len(name), maxName)]) {
		case "function_name":
			if f.Name, named = v.ToString(); !named {
				throwf(c, errRegisterName)
			}
		case "description":
			if f.Description, f.Described = v.ToString(); !f.Described {
				throwf(c, errRegisterText)
			}
		case "callback":
			if callback = v; !callback.IsFunction() {
				throwf(c, errRegisterCall)
			}
		case "flags":
			f.readFlags(c, v)
		default:
			throwf(c, errRegisterUnknown)
		}
	}
	if !named {
		throwf(c, errRegisterNoName)
	}
	if callback.IsNil() {
		throwf(c, errRegisterNoCall)
	}
	return callback
}

func (f *Function) readFlags(c *lua.Call, v lua.Value) {
	t, ok := v.AsTable()
	if !ok {
		throwf(c, errRegisterFlags)
	}
	for i := 1; !t.GetInt(i).IsNil(); i++ {
		c.Spend(stepsOfField)
		name, _ := t.GetInt(i).ToString()
		flag := flagNames[strings.ToLower(name[:min(len(name), maxName)])]
		if flag == 0 {
			throwf(c, errRegisterFlag)
		}
		f.Flags |= flag
	}
}

// flagOrder are the flags in the order in which Redis lists them.
var flagOrder = [...]string{"no-writes", "allow-oom", "allow-stale", "no-cluster", "allow-cross-slot-keys"}

// Names are the names of the flags.
func (f Flags) Names() (names []string) {
	for _, name := range flagOrder {
		if f&flagNames[name] != 0 {
			names = append(names, name)
		}
	}
	return names
}
