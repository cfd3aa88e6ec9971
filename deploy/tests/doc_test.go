// Package tests holds what keeps deploy/ true to Kubernetes, Prometheus, Docker and
// the binary. It is a module of its own: Kubernetes's types are no business of who
// builds Dunlin.
package tests
