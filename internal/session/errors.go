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
	errTimeout       = "ERR timeout is not an integer or out of range"
	errTimeoutLow    = "ERR timeout is negative"
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
	errNoConfigFile  = "ERR The server is running without a config file"
	errGenPass       = "ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096"
	errNoACLFile     = "ERR This Redis instance is not configured to use an ACL file. You may want to specify users via the " +
		"ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis configuration file set) in order " +
		"to store users in the Redis configuration."
	errNoDebug = "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can run it " +
		"from a local connection, otherwise you need to set this option in the configuration file, and then restart the server."
	errNoModules = "ERR MODULE command not allowed. If the enable-module-command option is set to \"local\", you can run it " +
		"from a local connection, otherwise you need to set this option in the configuration file, and then restart the server."
	errNoSuchClient = "ERR No such client"
	errKillID       = "ERR client-id should be greater than 0"
	errMaxAge       = "ERR maxage is not an integer or out of range"
	errMaxAgeLow    = "ERR maxage should be greater than 0"
	errMonitorKeys  = "ERR Replica can't interact with the keyspace"
	errSlowLogCount = "ERR count should be greater than or equal to -1"
	errPauseMode    = "ERR CLIENT PAUSE mode must be WRITE or ALL"
	errUnblocked    = "UNBLOCKED client unblocked via CLIENT UNBLOCK"
	errUnblock      = "ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR"
	errCaching      = "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled"
	// Ours: Redis has no server that lacks these.
	errTracking  = "ERR CLIENT TRACKING is not supported: this server does not remember which keys a client read"
	errCountKeys = "ERR CLUSTER COUNTKEYSINSLOT is answered by the nodes only"
	errSetUser   = "ERR ACL SETUSER is not supported: there is one user, default, and its password is set when the server starts"
	errSleepLong = "ERR DEBUG SLEEP is for 300 seconds at most"
	errShutdown  = "ERR SHUTDOWN is not supported: a server of this cluster is stopped where it was started"
	errNoDisk    = "ERR saving is not supported: this server keeps its data in memory only"
	errReplicaOf = "ERR REPLICAOF is not supported: the cluster itself decides which server keeps which data"
	errNoPFDebug = "ERR PFDEBUG and PFSELFTEST are not supported: they are for the developers of Redis"
	errNoSort    = "ERR SORT is not supported: this server has no lists, sets and sorted sets"
	errNoSync    = "ERR replication to Redis is not supported: the cluster copies its data among its own servers only"
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

// wrongSubArgs is the error for a number of arguments that the table's single
// number for a subcommand cannot express.
func wrongSubArgs(args [][]byte) string {
	return "ERR unknown subcommand or wrong number of arguments for '" + cut(args[1]) + "'. Try " +
		strings.ToUpper(string(args[0])) + " HELP."
}

// AppendTooManyClients appends the error for a connection over MaxClients.
func AppendTooManyClients(dst []byte) []byte { return resp.AppendError(dst, errTooMany) }

// equalFold is the comparison of option names: ASCII, in any case.
func equalFold(arg []byte, word string) bool {
	return len(arg) == len(word) && strings.EqualFold(string(arg), word)
}

func lower(arg []byte) string { return strings.ToLower(string(arg)) }

func appendOK(dst []byte) []byte { return append(dst, "+OK\r\n"...) }
