package about

import (
	"slices"
	"strings"
	"sync"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/glob"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// maxReply bounds the replies to COMMAND INFO and DOCS, in bytes: seven times the reply to COMMAND,
// 35 KB, and more than the documentation of all commands, 150 KB. A client may name one command many
// times, and a name of 6 bytes is answered with 10 KB.
const maxReply = 256 << 10

const errReplyTooLarge = "ERR the reply would be too large, ask for fewer names"

// commandAll answers COMMAND.
func commandAll(dst []byte, v resp.Version, _ [][]byte) []byte {
	listed, entries := command.Listed(), encodedEntries[v-resp.RESP2]()
	dst = resp.AppendArray(dst, len(listed))
	for _, c := range listed {
		dst = append(dst, entries[c.ID]...)
	}
	return dst
}

// commandCount answers COMMAND COUNT.
func commandCount(dst []byte, _ resp.Version, _ [][]byte) []byte {
	return resp.AppendInt(dst, int64(len(command.Listed())))
}

// commandInfo answers COMMAND INFO [name...], with null for an unknown name.
func commandInfo(dst []byte, v resp.Version, args [][]byte) []byte {
	names := args[2:]
	if len(names) == 0 {
		return commandAll(dst, v, args)
	}
	entries, size := encodedEntries[v-resp.RESP2](), 0
	for _, name := range names {
		if c := command.Shown(name); c != nil {
			size += len(entries[c.ID])
		}
	}
	if size > maxReply {
		return resp.AppendError(dst, errReplyTooLarge)
	}
	dst = resp.AppendArray(slices.Grow(dst, size+maxNull*len(names)), len(names))
	for _, name := range names {
		if c := command.Shown(name); c != nil {
			dst = append(dst, entries[c.ID]...)
		} else {
			dst = resp.AppendNull(dst, v)
		}
	}
	return dst
}

// maxNull is how many bytes null takes.
const maxNull = len("$-1\r\n")

// commandDocs answers COMMAND DOCS [name...], without unknown names.
func commandDocs(dst []byte, v resp.Version, args [][]byte) []byte {
	rows := command.Listed()
	if names := args[2:]; len(names) > 0 {
		rows = nil
		for _, name := range names {
			if c := command.Shown(name); c != nil {
				rows = append(rows, c)
			}
		}
	}
	return appendDocs(dst, v, rows)
}

// builtSubs returns the subcommands that may be shown.
func builtSubs(c *command.Command) []*command.Command {
	var subs []*command.Command
	for _, sub := range c.Subs {
		if sub.Built {
			subs = append(subs, sub)
		}
	}
	return subs
}

// appendEntry encodes one command as COMMAND INFO shows it.
func appendEntry(dst []byte, v resp.Version, c *command.Command) []byte {
	dst = resp.AppendArray(dst, 10)
	dst = resp.AppendBulkString(dst, c.Name)
	dst = resp.AppendInt(dst, int64(c.Arity))
	dst = appendNames(dst, v, c.Flags.Names())
	dst = resp.AppendInt(dst, int64(c.First))
	dst = resp.AppendInt(dst, int64(c.Last))
	dst = resp.AppendInt(dst, int64(c.Step))
	dst = appendNames(dst, v, c.Categories())
	dst = resp.AppendSet(dst, v, 0) // tips, for clients that talk to all nodes themselves
	dst = resp.AppendSet(dst, v, len(c.Keys))
	for i := range c.Keys {
		dst = appendKeySpec(dst, v, &c.Keys[i])
	}
	subs := builtSubs(c)
	if len(subs) == 0 {
		return resp.AppendSet(dst, v, 0)
	}
	dst = resp.AppendArray(dst, len(subs))
	for _, sub := range subs {
		dst = appendEntry(dst, v, sub)
	}
	return dst
}

func appendNames(dst []byte, v resp.Version, names []string) []byte {
	dst = resp.AppendSet(dst, v, len(names))
	for _, name := range names {
		dst = resp.AppendSimple(dst, name)
	}
	return dst
}

func appendKeySpec(dst []byte, v resp.Version, k *command.KeySpec) []byte {
	dst = resp.AppendMap(dst, v, 3)
	dst = resp.AppendBulkString(dst, "flags")
	dst = appendNames(dst, v, k.Use.Names())
	dst = resp.AppendBulkString(dst, "begin_search")
	switch k.Begin {
	case command.BeginIndex:
		dst = appendSpecType(dst, v, "index", 1)
		dst = appendSpecField(dst, "index", k.Index)
	case command.BeginKeyword:
		dst = appendSpecType(dst, v, "keyword", 2)
		dst = resp.AppendBulkStrings(dst, "keyword", k.Keyword)
		dst = appendSpecField(dst, "startfrom", k.Index)
	default:
		dst = appendSpecType(dst, v, "unknown", 0)
	}
	dst = resp.AppendBulkString(dst, "find_keys")
	switch k.Find {
	case command.FindRange:
		dst = appendSpecType(dst, v, "range", 3)
		dst = appendSpecField(dst, "lastkey", k.Last)
		dst = appendSpecField(dst, "keystep", k.Step)
		dst = appendSpecField(dst, "limit", k.Limit)
	case command.FindKeyNum:
		dst = appendSpecType(dst, v, "keynum", 3)
		dst = appendSpecField(dst, "keynumidx", k.NumIdx)
		dst = appendSpecField(dst, "firstkey", k.FirstKey)
		dst = appendSpecField(dst, "keystep", k.Step)
	default:
		dst = appendSpecType(dst, v, "unknown", 0)
	}
	return dst
}

// appendSpecType begins one half of a key spec, whose n fields follow.
func appendSpecType(dst []byte, v resp.Version, name string, n int) []byte {
	dst = resp.AppendMap(dst, v, 2)
	dst = resp.AppendBulkStrings(dst, "type", name)
	dst = resp.AppendBulkString(dst, "spec")
	return resp.AppendMap(dst, v, n)
}

func appendSpecField(dst []byte, name string, n int) []byte {
	dst = resp.AppendBulkString(dst, name)
	return resp.AppendInt(dst, int64(n))
}

// appendDocs encodes a map from name to documentation.
func appendDocs(dst []byte, v resp.Version, rows []*command.Command) []byte {
	docs, size := encodedDocs[v-resp.RESP2](), 0
	for _, c := range rows {
		size += len(c.Name) + len(docs[c.ID])
	}
	if size > maxReply {
		return resp.AppendError(dst, errReplyTooLarge)
	}
	dst = resp.AppendMap(slices.Grow(dst, size+maxBulkHead*len(rows)), v, len(rows))
	for _, c := range rows {
		dst = append(resp.AppendBulkString(dst, c.Name), docs[c.ID]...)
	}
	return dst
}

// maxBulkHead is how many bytes the name of a command takes beside itself.
const maxBulkHead = len("$99\r\n\r\n")

// encodedEntries has what COMMAND INFO shows of every row, for each version of the protocol. Clients ask for all of it
// when they connect.
var encodedEntries = [...]func() *[command.NumIDs][]byte{
	sync.OnceValue(func() *[command.NumIDs][]byte { return encodeRows(resp.RESP2, appendEntry) }),
	sync.OnceValue(func() *[command.NumIDs][]byte { return encodeRows(resp.RESP3, appendEntry) }),
}

// encodedDocs has the documentation of every row, for each version of the protocol. It is long, and
// redis-cli asks for all of it when it starts.
var encodedDocs = [...]func() *[command.NumIDs][]byte{
	sync.OnceValue(func() *[command.NumIDs][]byte { return encodeRows(resp.RESP2, appendDoc) }),
	sync.OnceValue(func() *[command.NumIDs][]byte { return encodeRows(resp.RESP3, appendDoc) }),
}

// encodeRows returns what appendRow appends of every row that is shown.
func encodeRows(v resp.Version, appendRow func(dst []byte, v resp.Version, c *command.Command) []byte) *[command.NumIDs][]byte {
	var rows [command.NumIDs][]byte
	for _, c := range command.Listed() {
		for _, row := range append([]*command.Command{c}, builtSubs(c)...) {
			rows[row.ID] = appendRow(nil, v, row)
		}
	}
	return &rows
}

func appendDoc(dst []byte, v resp.Version, c *command.Command) []byte {
	subs, arguments := builtSubs(c), argumentsOf()[c.Name]
	fields := 3
	if c.Deprecated != "" {
		fields += 2
	}
	if len(arguments) > 0 {
		fields++
	}
	if len(subs) > 0 {
		fields++
	}
	dst = resp.AppendMap(dst, v, fields)
	dst = resp.AppendBulkStrings(dst, "summary", c.Summary)
	dst = resp.AppendBulkStrings(dst, "since", c.Since)
	dst = resp.AppendBulkStrings(dst, "group", c.Group)
	if c.Deprecated != "" {
		dst = resp.AppendBulkString(dst, "doc_flags")
		dst = appendNames(dst, v, []string{"deprecated"})
		dst = resp.AppendBulkStrings(dst, "deprecated_since", c.Deprecated)
	}
	if len(arguments) > 0 {
		dst = appendArguments(resp.AppendBulkString(dst, "arguments"), v, arguments)
	}
	if len(subs) > 0 {
		dst = resp.AppendBulkString(dst, "subcommands")
		dst = resp.AppendMap(dst, v, len(subs))
		for _, sub := range subs {
			dst = appendDoc(resp.AppendBulkString(dst, sub.Name), v, sub)
		}
	}
	return dst
}

// commandList answers COMMAND LIST [FILTERBY ...], subcommands included.
func commandList(dst []byte, _ resp.Version, args [][]byte) []byte {
	keep := func(*command.Command) bool { return true }
	if options := args[2:]; len(options) > 0 {
		if keep = listFilter(options); keep == nil {
			return resp.AppendError(dst, command.ErrSyntax)
		}
	}
	return AppendNames(dst, keep)
}

// AppendNames appends an array of the names of the rows that are built and that keep wants,
// subcommands included.
func AppendNames(dst []byte, keep func(*command.Command) bool) []byte {
	var names []string
	for _, c := range command.Listed() {
		for _, row := range append([]*command.Command{c}, builtSubs(c)...) {
			if keep(row) {
				names = append(names, row.Name)
			}
		}
	}
	return resp.AppendBulkStrings(resp.AppendArray(dst, len(names)), names...)
}

// maxFilter bounds the value of FILTERBY, which is compared with every command, in bytes.
const maxFilter = 1 << 10

// listFilter returns the filter of FILTERBY MODULE|ACLCAT|PATTERN value, or nil if it is none of
// these.
func listFilter(options [][]byte) func(*command.Command) bool {
	if len(options) != 3 || !command.EqualFold(options[0], "filterby") || len(options[2]) > maxFilter {
		return nil
	}
	value := strings.ToLower(string(options[2]))
	switch strings.ToLower(string(options[1])) {
	case "module": // there are no modules
		return func(*command.Command) bool { return false }
	case "aclcat":
		return func(c *command.Command) bool { return slices.Contains(c.Categories(), "@"+value) }
	case "pattern":
		if pattern, err := glob.Compile([]byte(value)); err == nil {
			return func(c *command.Command) bool { return pattern.Match([]byte(c.Name)) }
		}
	}
	return nil
}
