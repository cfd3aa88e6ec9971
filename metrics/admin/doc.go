// Package admin is the admin HTTP server of a process. It reports whether the process is alive and
// ready, and hands every other path to the package that answers it.
//
//	/            a page for people: the cluster, live; readable without JavaScript    metrics/page
//	/api/live    what the page draws, as JSON
//	/metrics     Prometheus                                                           metrics/exporter
//	/api/status  the Status as JSON                                                   metrics/status
//	/api/drain?member=ID&on=true   POST: move all data off a node                     metrics/control
//	/api/rebalance?paused=true     POST, to the coordinator: pause rebalancing
//	/healthz     200 while the event loops run; says nothing about other members
//	/readyz      200 when every member here can serve
//	/debug/pprof with --pprof only
//
// # Invariants
//
//   - The server answers from the moment of Listen, before there are members.
//   - /healthz and /readyz ask no other process: a platform that restarts unhealthy processes must
//     not restart a cluster because one member is gone.
//   - With an admin token, whatever shows keys, clients' addresses or members requires it; /metrics,
//     /healthz and /readyz never do. Without one, a request that arrives at a loopback address must
//     name this machine (guard.go).
//   - At most 512 connections are open, 256 of one source, and half as many more that are being
//     answered. A new one of either kind displaces the oldest of that kind.
//   - Every phase of a request has a bound, and 64 readers of the page and 64 of the status are
//     served at a time; the next get 503.
package admin
