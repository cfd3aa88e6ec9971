// Package control takes an operator's orders over admin HTTP: drain a node, pause rebalancing.
//
//	dunlin drain ──POST /api/drain──────▶ Control ─▶ authorized? ─▶ Member.Drain of that node
//	dunlin rebalance ─POST /api/rebalance▶    └─▶ Member.PauseRebalance of the coordinator
//
// # Invariants
//
//   - An order needs the token that follows from the cluster's secret, in a header that no page of
//     another site can set. Without a secret only this machine may send orders, by a name that can
//     only mean this machine.
//   - An order is answered when it is accepted, not when it is carried out.
package control
