// Package page is the live page for people: the cluster as this process sees it, readable without
// JavaScript, drawn and kept up to date with it.
//
//	browser ──GET /──────────▶ page.html with the state of now
//	        ──GET /api/live──▶ Live as JSON, every two seconds (page.js)
//	                             ├─ status.Local.Gather: the members of this process
//	                             └─ status.Report: those of others, each asked for itself
//
// # Invariants
//
//   - Other processes are asked because somebody looks at this one's page: never otherwise, by one
//     question at a time, and not more often than a second and 20 ms a member apart.
//   - Nothing from members or clients (ids, keys) becomes markup or script.
//   - The page loads nothing from elsewhere.
package page
