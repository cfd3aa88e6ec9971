package resp_test

import (
	"fmt"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// A connection's bytes come in pieces. Requests that are whole are answered, and what is
// left waits for more.
func ExampleParser() {
	var (
		parser resp.Parser
		input  []byte
	)
	for _, piece := range []string{"*1\r\n$4\r\nPI", "NG\r\nECHO 'a word'\r\n*1\r\nfoo\r\n"} {
		input = append(input, piece...)
		used := 0
		for {
			outcome := parser.Parse(input[used:])
			if outcome == resp.NeedMore {
				break
			}
			if outcome == resp.Malformed {
				fmt.Printf("%q\n", resp.AppendError(nil, parser.Err()))
				return
			}
			fmt.Printf("%q\n", parser.Args())
			used += parser.Len()
		}
		input = append(input[:0], input[used:]...)
	}
	// Output:
	// ["PING"]
	// ["ECHO" "a word"]
	// "-ERR Protocol error: expected '$', got 'f'\r\n"
}

// The reply to a request comes back with its extent, and is read only where it matters.
func ExampleScanner() {
	var scanner resp.Scanner
	input := []byte("$5\r\nvalue\r\n:42\r\n*1\r\n+unfinished")
	for scanner.Scan(input) == resp.Done {
		reply := input[:scanner.Len()]
		if n, ok := resp.DecodeInt(reply); ok {
			fmt.Println("integer", n)
		}
		if value, ok := resp.DecodeBulk(reply); ok {
			fmt.Printf("bulk %q\n", value)
		}
		input = input[scanner.Len():]
	}
	// Output:
	// bulk "value"
	// integer 42
}
