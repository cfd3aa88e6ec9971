package session

import (
	"strings"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// The texts of Redis 7, to the letter: clients compare them. ioredis, for one,
// goes on without a password if it recognises errNoPasswordSet.
const (
	errNoAuth      = "NOAUTH Authentication required."
	errNoAuthHello = "NOAUTH HELLO must be called with the client already authenticated, otherwise the " +
		"HELLO AUTH <user> <pass> option can be used to authenticate the client and select the RESP " +
		"protocol version at the same time"
	errWrongPass     = "WRONGPASS invalid username-password pair or user is disabled."
	errNoPasswordSet = "ERR AUTH <password> called without any password configured for the default user. " +
		"Are you sure your configuration is correct?"
	errNoProto       = "NOPROTO unsupported protocol version"
	errProtoNumber   = "ERR Protocol version is not an integer or out of range"
	errSyntax        = "ERR syntax error"
	errNotInteger    = "ERR value is not an integer or out of range"
	errNotInt32      = "ERR value is out of range, value must between -2147483648 and 2147483647"
	errDBIndex       = "ERR DB index is out of range"
	errClientName    = "ERR Client names cannot contain spaces, newlines or special characters."
	errClientID      = "ERR Invalid client ID"
	errTooMany       = "ERR max number of clients reached"
	errInvalidSlot   = "ERR Invalid slot"
	errNoSuchCommand = "ERR Invalid command specified"
	errNoKeyArgs     = "ERR The command has no key arguments"
	errKeysArity     = "ERR Invalid number of arguments specified for command"
	errKeysArgs      = "ERR Invalid arguments specified for command"
	errStaticConfig  = "can't set immutable config"
	// Ours: Redis has no server that lacks these.
	errTracking  = "ERR CLIENT TRACKING is not supported: this server does not remember which keys a client read"
	errCountKeys = "ERR CLUSTER COUNTKEYSINSLOT is answered by the nodes only"
)

// maxQuoted is how much of a client's own argument an error repeats, as in
// Redis: an error must not be as long as the argument that caused it.
const maxQuoted = 128

// cut shortens a client's own argument for an error text.
func cut(arg []byte) string {
	if len(arg) > maxQuoted {
		arg = arg[:maxQuoted]
	}
	return string(arg)
}

// AppendTooManyClients appends the error for a connection over MaxClients.
func AppendTooManyClients(dst []byte) []byte { return resp.AppendError(dst, errTooMany) }

// equalFold is the comparison of option names: ASCII, in any case.
func equalFold(arg []byte, word string) bool {
	return len(arg) == len(word) && strings.EqualFold(string(arg), word)
}

func lower(arg []byte) string { return strings.ToLower(string(arg)) }

func appendOK(dst []byte) []byte { return append(dst, "+OK\r\n"...) }
