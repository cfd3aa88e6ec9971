// Package netloop runs event loops: a few threads, each with an epoll instance and many non-blocking TCP connections.
package netloop
