package session

import (
	"slices"
	"strings"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// clientList checks the options of CLIENT LIST; the caller adds the lines.
func clientList(_ *Server, st *State, args [][]byte, dst []byte) ([]byte, Action) {
	if _, refusal := parseListFilter(args, st); refusal != "" {
		return resp.AppendError(dst, refusal), ActionNone
	}
	return dst, ActionClientList
}

// clientKill checks the options of CLIENT KILL; the caller closes the connections.
func clientKill(_ *Server, st *State, args [][]byte, dst []byte) ([]byte, Action) {
	if _, refusal := parseKillFilter(args, st); refusal != "" {
		return resp.AppendError(dst, refusal), ActionNone
	}
	return dst, ActionClientKill
}

// ClientFilter selects the connections of a CLIENT LIST or CLIENT KILL.
type ClientFilter struct {
	ids         []int64 // sorted; nil: all
	addr, laddr string  // "": any
	minAge      int64   // seconds
	skip        uint64  // id of the client to leave out; 0: none
	nobody      bool    // the filter names a type of client that Dunlin does not have
	typed       bool    // only clients that subscribe, or only those that do not
	subscribes  bool
}

// clientFilterOf returns the filter of a request of the client st for which Do returned
// ActionClientList or ActionClientKill. The filter keeps no view of args.
func clientFilterOf(args [][]byte, st *State) ClientFilter {
	parse := parseListFilter
	if command.EqualFold(args[1], "kill") {
		parse = parseKillFilter
	}
	f, _ := parse(args, st)
	return f
}

// Match reports whether the filter selects this connection. now is the server's Clock.
func (f *ClientFilter) Match(st *State, now time.Duration) bool {
	if f.nobody || st.ID == f.skip || f.typed && st.Subscribes() != f.subscribes {
		return false
	}
	if _, named := slices.BinarySearch(f.ids, int64(st.ID)); f.ids != nil && !named {
		return false
	}
	if f.minAge > 0 && seconds(now-st.Since) < f.minAge {
		return false
	}
	return (f.addr == "" || f.addr == st.Addr) && (f.laddr == "" || f.laddr == st.LAddr)
}

// appendClientKill encodes the reply to a CLIENT KILL with the given number of words. As in Redis,
// the reply to an address alone is not a number.
func appendClientKill(dst []byte, words, killed int) []byte {
	switch {
	case words != 3:
		return resp.AppendInt(dst, int64(killed))
	case killed == 0:
		return resp.AppendError(dst, errNoSuchClient)
	}
	return resp.AppendOK(dst)
}

func parseListFilter(args [][]byte, _ *State) (f ClientFilter, refusal string) {
	options := args[2:]
	switch {
	case len(options) == 0:
		return f, ""
	case len(options) == 2 && command.EqualFold(options[0], "type"):
		return f, f.setType(options[1])
	case len(options) >= 2 && command.EqualFold(options[0], "id"):
		for _, arg := range options[1:] {
			id, ok := resp.ParseInt(arg)
			if !ok {
				return f, errClientID
			}
			f.ids = append(f.ids, id)
		}
		slices.Sort(f.ids)
		f.ids = slices.Compact(f.ids)
		return f, ""
	}
	return f, command.ErrSyntax
}

// parseKillFilter parses CLIENT KILL addr, which spares nobody, and CLIENT KILL option value...,
// which spares the asking client unless SKIPME says otherwise.
func parseKillFilter(args [][]byte, st *State) (f ClientFilter, refusal string) {
	if len(args) == 3 {
		return ClientFilter{addr: string(args[2])}, ""
	}
	f.skip = st.ID
	for options := args[2:]; len(options) > 0; options = options[2:] {
		if len(options) < 2 {
			return f, command.ErrSyntax
		}
		if refusal := f.setOption(strings.ToLower(string(options[0])), options[1], st); refusal != "" {
			return f, refusal
		}
	}
	return f, ""
}

func (f *ClientFilter) setOption(name string, value []byte, st *State) (refusal string) {
	n, isNumber := resp.ParseInt(value)
	switch name {
	case "id":
		if !isNumber || n < 1 {
			return errKillID
		}
		f.ids = []int64{n}
	case "maxage":
		if !isNumber {
			return errMaxAge
		}
		if n <= 0 {
			return errMaxAgeLow
		}
		f.minAge = n
	case "type":
		return f.setType(value)
	case "addr":
		f.addr = addressOf(value)
	case "laddr":
		f.laddr = addressOf(value)
	case "user":
		if string(value) != defaultUser {
			return "ERR No such user '" + command.Cut(value) + "'"
		}
	case "skipme":
		return f.setSkipMe(value, st)
	default:
		return command.ErrSyntax
	}
	return ""
}

// addressOf returns a word as an address. Of one that is longer than any address it keeps as much as shows that.
func addressOf(word []byte) string { return string(word[:min(len(word), maxAddress)]) }

// maxAddress is longer than every address, that of IPv6 with a zone and a port too.
const maxAddress = 128

func (f *ClientFilter) setSkipMe(value []byte, st *State) (refusal string) {
	switch strings.ToLower(string(value)) {
	case "yes":
		f.skip = st.ID
	case "no":
		f.skip = 0
	default:
		return command.ErrSyntax
	}
	return ""
}

func (f *ClientFilter) setType(name []byte) (refusal string) {
	switch strings.ToLower(string(name)) {
	case "normal", "pubsub":
		f.typed, f.subscribes = true, strings.EqualFold(string(name), "pubsub")
	case "replica", "slave", "master":
		f.nobody = true
	default:
		return "ERR Unknown client type '" + command.Cut(name) + "'"
	}
	return ""
}
