package about

import (
	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

const (
	errNoSuchCommand = "ERR Invalid command specified"
	errNoKeyArgs     = "ERR The command has no key arguments"
	errKeysArity     = "ERR Invalid number of arguments specified for command"
	errKeysArgs      = "ERR Invalid arguments specified for command"
)

// commandGetKeys answers COMMAND GETKEYS followed by a whole request.
func commandGetKeys(dst []byte, _ resp.Version, args [][]byte) []byte {
	c, request, refusal := keyedRequest(args)
	if refusal != "" {
		return resp.AppendError(dst, refusal)
	}
	positions, ok := c.AppendKeys(nil, request)
	if !ok {
		return resp.AppendError(dst, errKeysArgs)
	}
	dst = resp.AppendArray(dst, len(positions))
	for _, p := range positions {
		dst = resp.AppendBulk(dst, request[p])
	}
	return dst
}

// commandGetKeysAndFlags answers COMMAND GETKEYSANDFLAGS: each key with what the command does to
// it. The flags are those of the whole command; options that narrow them are not looked at.
func commandGetKeysAndFlags(dst []byte, v resp.Version, args [][]byte) []byte {
	c, request, refusal := keyedRequest(args)
	if refusal != "" {
		return resp.AppendError(dst, refusal)
	}
	var body []byte
	n := 0
	for i := range c.Keys {
		// A row with this one spec finds the keys to which the flags belong.
		one := command.Command{Keys: c.Keys[i : i+1]}
		positions, ok := one.AppendKeys(nil, request)
		if !ok {
			return resp.AppendError(dst, errKeysArgs)
		}
		for _, p := range positions {
			body = resp.AppendArray(body, 2)
			body = resp.AppendBulk(body, request[p])
			body = appendNames(body, v, c.Keys[i].Use.Names())
		}
		n += len(positions)
	}
	return append(resp.AppendArray(dst, n), body...)
}

// Row returns the row that a request runs, among the rows that are shown, or nil. request has at
// least the name.
func Row(request [][]byte) *command.Command {
	c := command.Shown(request[0])
	if c != nil && c.Subs != nil && len(request) > 1 {
		if c = c.Sub(request[1]); c != nil && !c.Built {
			c = nil
		}
	}
	return c
}

// keyedRequest finds the row of the request that is an argument of args.
func keyedRequest(args [][]byte) (c *command.Command, request [][]byte, refusal string) {
	request = args[2:]
	c = Row(request)
	switch {
	case c == nil:
		return nil, nil, errNoSuchCommand
	case len(c.Keys) == 0:
		return nil, nil, errNoKeyArgs
	case !c.ArityOK(len(request)):
		return nil, nil, errKeysArity
	}
	return c, request, ""
}
