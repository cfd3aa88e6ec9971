// Package tests checks deploy/ against Kubernetes, Prometheus, Docker and the binary. It is a
// module of its own, so that building Dunlin does not need Kubernetes's types.
package tests
