// Command clients runs the scenario of ../README.md with one of Go's client
// libraries: clients LIBRARY ADDRESS.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
)

// library is a client library. open returns a client with the library's defaults, which need not
// be connected yet.
type library struct {
	module string
	open   func(ctx context.Context, addr string) (client, error)
}

var libraries = map[string]library{
	"go-redis": {"github.com/redis/go-redis/v9", openGoRedis},
	"rueidis":  {"github.com/redis/rueidis", openRueidis},
	"redigo":   {"github.com/gomodule/redigo", openRedigo},
	"radix":    {"github.com/mediocregopher/radix/v4", openRadix},
}

func main() {
	if len(os.Args) != 3 || libraries[os.Args[1]].open == nil && programs[os.Args[1]].steps == nil {
		fmt.Fprintln(os.Stderr, "usage: clients LIBRARY ADDRESS")
		os.Exit(2)
	}
	name, addr := os.Args[1], os.Args[2]
	if p, ok := programs[name]; ok {
		fmt.Println("version", versionOf(p.module))
		p.run(addr)
		return
	}
	lib := libraries[name]
	fmt.Println("version", versionOf(lib.module))
	ctx := context.Background()
	client, err := lib.open(ctx, addr)
	if err != nil {
		fmt.Printf("FAIL connect: %v\n", err)
		return
	}
	s := scenario{ctx: ctx, client: client, prefix: name + ":"}
	s.run()
}

func versionOf(module string) string {
	info, _ := debug.ReadBuildInfo()
	for _, m := range info.Deps {
		if m.Path == module {
			return m.Version
		}
	}
	return "unknown"
}
