package session

import (
	"crypto/rand"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/dunlin-cache/dunlin/internal/about"
	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// There is one user, "default", who may do everything. Libraries and frameworks ask who they are,
// so the ACL commands answer; they change nothing.

const defaultUser = "default"

func aclWhoAmI(_ *Server, _ *State, _ [][]byte, dst []byte) ([]byte, Action) {
	return resp.AppendBulkString(dst, defaultUser), ActionNone
}

func aclUsers(_ *Server, _ *State, _ [][]byte, dst []byte) ([]byte, Action) {
	return resp.AppendBulkString(resp.AppendArray(dst, 1), defaultUser), ActionNone
}

func (s *Server) aclList(_ *State, _ [][]byte, dst []byte) ([]byte, Action) {
	rule := "nopass"
	if hashes := s.passwords.hashes(); len(hashes) > 0 {
		rule = "#" + strings.Join(hashes, " #")
	}
	dst = resp.AppendArray(dst, 1)
	return resp.AppendBulkString(dst, "user "+defaultUser+" on "+rule+" ~* &* +@all"), ActionNone
}

func (s *Server) aclGetUser(st *State, args [][]byte, dst []byte) ([]byte, Action) {
	if string(args[2]) != defaultUser {
		return resp.AppendNull(dst, st.Version), ActionNone
	}
	flags, passwords := []string{"on"}, s.passwords.hashes()
	if !s.passwords.Needed() {
		flags = append(flags, "nopass")
	}
	dst = resp.AppendMap(dst, st.Version, 6)
	dst = resp.AppendBulkString(dst, "flags")
	dst = resp.AppendBulkStrings(resp.AppendSet(dst, st.Version, len(flags)), flags...)
	dst = resp.AppendBulkString(dst, "passwords")
	dst = resp.AppendBulkStrings(resp.AppendArray(dst, len(passwords)), passwords...)
	dst = resp.AppendBulkStrings(dst, "commands", "+@all")
	dst = resp.AppendBulkStrings(dst, "keys", "~*")
	dst = resp.AppendBulkStrings(dst, "channels", "&*")
	dst = resp.AppendBulkString(dst, "selectors")
	return resp.AppendArray(dst, 0), ActionNone
}

// aclCat answers ACL CAT [category]. Its lists include subcommands.
func aclCat(_ *Server, _ *State, args [][]byte, dst []byte) ([]byte, Action) {
	categories := command.CategoryNames()
	if len(args) == 2 {
		dst = resp.AppendArray(dst, len(categories))
		for _, name := range categories {
			dst = resp.AppendBulkString(dst, strings.TrimPrefix(name, "@"))
		}
		return dst, ActionNone
	}
	if len(args) > 3 {
		return resp.AppendError(dst, command.WrongSubArgs(args)), ActionNone
	}
	at := slices.IndexFunc(categories, func(name string) bool { return command.EqualFold(args[2], name[len("@"):]) })
	if at < 0 {
		return resp.AppendError(dst, "ERR Unknown category '"+command.Cut(args[2])+"'"), ActionNone
	}
	wanted := categories[at]
	return about.AppendNames(dst, func(c *command.Command) bool { return slices.Contains(c.Categories(), wanted) }), ActionNone
}

// aclDryRun answers ACL DRYRUN user command [arg...]: the user may run every command that exists.
func aclDryRun(_ *Server, _ *State, args [][]byte, dst []byte) ([]byte, Action) {
	if string(args[2]) != defaultUser {
		return resp.AppendError(dst, "ERR User '"+command.Cut(args[2])+"' not found"), ActionNone
	}
	request := args[3:]
	c := about.Row(request)
	if c == nil {
		return resp.AppendError(dst, "ERR Command '"+command.Cut(request[0])+"' not found"), ActionNone
	}
	if !c.ArityOK(len(request)) {
		return resp.AppendErrorBytes(dst, command.AppendWrongArity(nil, c)), ActionNone
	}
	return resp.AppendOK(dst), ActionNone
}

// maxGenPassBits is Redis's limit of ACL GENPASS.
const maxGenPassBits = 4096

// aclGenPass answers ACL GENPASS [bits] with as many hexadecimal digits as these bits take.
func aclGenPass(_ *Server, _ *State, args [][]byte, dst []byte) ([]byte, Action) {
	bits := int64(256)
	if len(args) > 3 {
		return resp.AppendError(dst, command.WrongSubArgs(args)), ActionNone
	}
	if len(args) == 3 {
		var ok bool
		if bits, ok = resp.ParseInt(args[2]); !ok {
			return resp.AppendError(dst, command.ErrNotInteger), ActionNone
		}
	}
	if bits <= 0 || bits > maxGenPassBits {
		return resp.AppendError(dst, errGenPass), ActionNone
	}
	digits := (bits + 3) / 4
	random := make([]byte, (digits+1)/2)
	rand.Read(random) // never fails: crypto/rand ends the process instead
	return resp.AppendBulkString(dst, hex.EncodeToString(random)[:digits]), ActionNone
}

// aclLog answers ACL LOG [count | RESET] with an empty log: nobody is ever denied anything.
func aclLog(_ *Server, _ *State, args [][]byte, dst []byte) ([]byte, Action) {
	switch len(args) {
	case 2:
		return resp.AppendArray(dst, 0), ActionNone
	case 3:
		if command.EqualFold(args[2], "reset") {
			return resp.AppendOK(dst), ActionNone
		}
		if _, ok := resp.ParseInt(args[2]); !ok {
			return resp.AppendError(dst, command.ErrNotInteger), ActionNone
		}
		return resp.AppendArray(dst, 0), ActionNone
	}
	return resp.AppendError(dst, command.WrongSubArgs(args)), ActionNone
}

// aclDelUser answers ACL DELUSER name... with 0: no user but "default" exists, and that one stays.
func aclDelUser(_ *Server, _ *State, args [][]byte, dst []byte) ([]byte, Action) {
	for _, name := range args[2:] {
		if string(name) == defaultUser {
			return resp.AppendError(dst, "ERR The 'default' user cannot be removed"), ActionNone
		}
	}
	return resp.AppendInt(dst, 0), ActionNone
}
