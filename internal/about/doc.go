// Package about answers what clients ask about the server as a product: which commands it has
// (COMMAND), how they are used (HELP), and the commands of Redis about parts that Dunlin does not
// have, such as SAVE, REPLICAOF and LATENCY DOCTOR.
//
// Every reply follows from the command table and the request. There is no state and no hook here.
//
//	internal/command: rows ──▶ commands.go  COMMAND, COMMAND INFO, DOCS, LIST
//	                      └──▶ keys.go      COMMAND GETKEYS
//	        arguments.txt ───▶ arguments.go what COMMAND DOCS says of arguments
//	                           help.go      CLIENT HELP, CONFIG HELP, ...
//	                           refused.go   what already holds is granted, the rest is refused
//	                           latency.go, memory.go: as a Redis without that part answers
//
// # Invariants
//
//   - Only rows that are built are shown, and help lists only what is built.
//   - dst is appended to and handed back; args are only read, and no view of them is kept.
//   - The form of a reply is that of Redis 7; a refusal that Redis does not have says why trying
//     again is of no use.
package about
