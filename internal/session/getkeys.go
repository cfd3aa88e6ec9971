package session

import (
	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// commandGetKeys answers COMMAND GETKEYS followed by a whole request.
func commandGetKeys(_ *Server, _ *State, args [][]byte, dst []byte) ([]byte, Action) {
	c, request, refusal := keyedRequest(args)
	if refusal != "" {
		return resp.AppendError(dst, refusal), ActionNone
	}
	positions, ok := c.AppendKeys(nil, request)
	if !ok {
		return resp.AppendError(dst, errKeysArgs), ActionNone
	}
	dst = resp.AppendArray(dst, len(positions))
	for _, p := range positions {
		dst = resp.AppendBulk(dst, request[p])
	}
	return dst, ActionNone
}

// commandGetKeysAndFlags is the same with what is done to each key. The flags
// are those of the whole command: options that narrow them are not looked at.
func commandGetKeysAndFlags(_ *Server, st *State, args [][]byte, dst []byte) ([]byte, Action) {
	c, request, refusal := keyedRequest(args)
	if refusal != "" {
		return resp.AppendError(dst, refusal), ActionNone
	}
	var body []byte
	n := 0
	for i := range c.Keys {
		// A row with this one spec finds the keys that the flags belong to.
		one := command.Command{Keys: c.Keys[i : i+1]}
		positions, ok := one.AppendKeys(nil, request)
		if !ok {
			return resp.AppendError(dst, errKeysArgs), ActionNone
		}
		for _, p := range positions {
			body = resp.AppendArray(body, 2)
			body = resp.AppendBulk(body, request[p])
			body = appendNames(body, st.Version, c.Keys[i].Use.Names())
		}
		n += len(positions)
	}
	return append(resp.AppendArray(dst, n), body...), ActionNone
}

// keyedRequest finds the row of the request that is an argument of args.
func keyedRequest(args [][]byte) (c *command.Command, request [][]byte, refusal string) {
	request = args[2:]
	c = find(request[0])
	if c != nil && c.Subs != nil && len(request) > 1 {
		if c = c.Sub(request[1]); c != nil && !c.Built {
			c = nil
		}
	}
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
