// Package lua is Lua 5.1 as Redis runs it: a compiler, a register machine and the libraries, with budgets
// of steps and bytes that no script can exceed. It knows neither Redis nor Dunlin.
//
// # Terms
//
//	Prototype   a compiled function: immutable, shared by any number of States
//	State       globals, a stack and budgets: what one goroutine runs scripts in, one after the other
//	host        who embeds this package; a host function (builtin) is one that is written in Go
//	step        about an instruction; library functions charge steps for work within them
//	charge      bytes are charged to the State before they are allocated
//	census      when the account of bytes is full, what is reachable is counted anew
//	look        every 10,000 steps: was the script stopped, does the host object, are steps left
//	trial       a run that may begin anew in another State, and must see there what it has seen here
//
// # Picture
//
//	source ─ lexer ─ parser ── emit ──> Prototype ─ State.Load ─> closure
//	                  │ expressions, operators, loops, scope
//	                  └ one pass, no tree: depth is bounded by maxNesting
//
//	State ── thread ── stack   [ … f │ args, varargs │ r0 r1 r2 …            │ free … ]
//	  │        │                      └ frame.base ────┘ window: 256 slots, so no bounds are checked
//	  │        └── frames: machine.go runs those of Lua; call.go those of the host
//	  └── account: fuel, reserve, used, limit
//
// # Budgets
//
// A script that has spent its steps or bytes, or was stopped, ends with an *Error that has a Cause: ErrSteps,
// ErrMemory, ErrStopped, or what Look returned. pcall, xpcall and coroutine.resume let such an error pass.
//
// Steps are counted at calls, returns and backward jumps, by the number of instructions since; library
// functions charge for loops of their own. The same script with the same input takes the same steps.
//
// Bytes are counted when they are allocated (Table.resize, join, newClosure, NewString …), and given back
// only by a census, which walks from the globals, the stacks and what the host has pinned. While a host
// function runs, what it charged counts as reachable: only it knows what it holds. A census costs steps.
//
// A trial (Limits.Trial) ends early rather than late: when all that it has allocated, garbage included, exceeds its
// bytes, and where a script could see in what two States differ, such as the memory in use. Two States that were made
// alike show a script the same numbers of tables, and so the same order of pairs, and the same random numbers. A look
// comes every 1,000 steps.
//
// Recursion in Go is bounded: by maxNesting in the compiler, by maxHost where the machine calls the host and
// the host the machine (metamethods, pcall, sort, gsub). Calls within Lua do not recurse in Go.
//
// # How a library is added
//
//	func openThing(s *lua.State) {
//		s.Register(s.Library("thing"), map[string]lua.HostFunction{
//			"twice": func(c *lua.Call) {
//				text := c.CheckString(1)     // or raises "bad argument #1 to 'twice' (…)"; not a copy
//				c.Charge(2 * len(text))      // before the allocation; also spends a step for each 32 bytes
//				c.PushString(text + text)    // results are pushed
//			},
//		})
//	}
//
// Rules for host functions:
//   - Charge before you allocate, Spend before (or while) you loop. Neither returns if the budget is exceeded.
//   - Errors are raised by Errorf (with the place of the call in front), ArgError, TypeError or Throw. They
//     unwind by panic, so clean up with defer.
//   - Strings are immutable and may be kept. State.NewString copies bytes and charges them; a part of a string
//     that is kept must be copied (copyString), or it keeps the whole alive uncounted.
//   - Tables come from State.NewTable and are filled with Set, SetInt, SetString, which charge and ignore
//     metatables and read-only marks. RawSet is for changes that the script asks for.
//   - Work that nests as its input does (decoders) bounds its depth.
//   - What a function keeps between its calls is a captured Value (State.Function), so that a census sees it.
//   - What scripts can set is set back by State.AtReset.
//
// # Read-only tables
//
// Table.SetReadOnly makes every change by a script fail with "Attempt to modify a readonly table", as in Redis
// 7. The host marks all that scripts share (globals, libraries, the metatable of strings), then calls Seal.
//
// # Fidelity
//
// Tables have the layout of Lua 5.1, so that pairs, # and cjson see the same order and the same borders. Numbers
// are read as strtod reads them and written as "%.14g" writes them. Messages, and the names of variables in
// them, are those of Lua 5.1. Coroutines have stacks of their own and need no goroutine; as in Lua 5.1 they
// cannot yield across pcall, metamethods and iterators. Left out: dofile, loadfile, require, module, string.dump,
// debug, io, finalizers and weak tables (a weak table is an ordinary one).
//
// The libraries bit, cjson, cmsgpack and struct return what those of Redis 7.0.15 return, in their words: testdata
// holds scripts with results that redis-server gave. One difference: what a script sets about cjson ends with the
// script.
//
// # Why not a library
//
// yuin/gopher-lua was measured first. It cannot be closed from outside: t[60e6] = 1 takes 9.2 s and 2.9 GiB,
// because a table fills its array up to any index; its patterns and string.rep have no budget, and
// its only stop is a context that is asked at every instruction (a loop of 50 M: 8.4 s). tonumber("2e2") is
// nil there, and numbers are not written by "%.14g".
package lua
