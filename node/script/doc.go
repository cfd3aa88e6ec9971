// Package script is the Lua side of EVAL and FCALL: which scripts a node knows, what a script sees, and how values of
// Lua become replies and the other way round. The language is internal/lua; who executes the commands of a script,
// and where, is the node's business (node/scripts.go), which is the Host of a Machine here.
//
// # Terms
//
//	Script   a compiled body, named by its SHA-1; immutable and shared
//	Library  the scripts that a node knows
//	FunctionLibrary, Function, FunctionSet   what FUNCTION LOAD loads, what that registers, and all of a cluster
//	Machine  a Lua state with Redis's libraries: runs one script at a time, and is reused
//	Host     executes the commands of a script, and may end it
//	run      one execution of a script
//	trial    a run on a loop, which may have to begin anew in a goroutine
//
// # Picture
//
//	EVAL body ──> Library.Add ──> Script ─┐
//	EVALSHA sha ─> Library.Get ───────────┴─> Machine.Run ── redis.call ──> Host.Call ──> handler (node/data)
//	                                              │    ^──── values ────────── reply ─────────┘
//	                                              └─> Machine.Reply: the result, as a reply
//
//	FUNCTION LOAD ─> ParseLibrary ─> Compile ─> Machine.Register ─> FunctionSet.Join ─> Encode: settings of the cluster
//	FCALL name ────> FunctionSet.Function ─> Function.Script ─> Machine.Run: the library, then the function
//
// # Where a script runs
//
// A script runs in a goroutine; few of them compute at a time, in turns. Meanwhile it holds its partition, as EXEC does
// when it takes long: nobody else sees it half done, time stands still, and what it changes reaches copies as one unit
// when it ends. Each of its commands locks the shard for itself, so a script of any length stops nobody but those who
// want its partition. They wait until it has run for 4.5 s; from then on they get -BUSY, and SCRIPT KILL ends the
// script if it has changed nothing.
//
// A known script is first tried on the loop, under the lock of its partition (Run.Trial): for TrialSteps steps at most,
// without memory beyond FreeBytes, and for as long as the Host says. If it needs more, it moves to a goroutine: it
// begins anew there, and its first commands return what they returned on the loop. All Machines are made alike, and a
// trial ends where a script could see a difference, so a script calls the second time what it called the first time.
// The more trials in a row were too long, the fewer follow (Script.NoteTrial).
//
// # Budgets
//
// Steps: none but in a trial. Host.Look is asked every 10,000 steps, every 1,000 in a trial, and ends a script that was
// killed, whose client has gone before it changed anything, or that has run for too long. Bytes: a Machine begins with
// FreeBytes, and the Host charges to the node's memory what a script takes beyond that, up to MaxBytes in all. A script
// that finds none left ends with an error, and what it has changed stays, as in Redis.
package script
