package session

import "github.com/dunlin-cache/dunlin/internal/resp"

// The texts of Redis 7, to the letter, because clients compare them. ioredis, for one, continues
// without a password if it recognises errNoPasswordSet.
const (
	errNoAuth      = "NOAUTH Authentication required."
	errNoAuthHello = "NOAUTH HELLO must be called with the client already authenticated, otherwise the " +
		"HELLO AUTH <user> <pass> option can be used to authenticate the client and select the RESP " +
		"protocol version at the same time"
	errWrongPass     = "WRONGPASS invalid username-password pair or user is disabled."
	errNoPasswordSet = "ERR AUTH <password> called without any password configured for the default user. " +
		"Are you sure your configuration is correct?"
	errNoProto     = "NOPROTO unsupported protocol version"
	errProtoNumber = "ERR Protocol version is not an integer or out of range"
	errTimeout     = "ERR timeout is not an integer or out of range"
	errTimeoutLow  = "ERR timeout is negative"
	errClientName  = "ERR Client names cannot contain spaces, newlines or special characters."
	errClientID    = "ERR Invalid client ID"
	errTooMany     = "ERR max number of clients reached"
	errGenPass     = "ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096"
	errNoDebug     = "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can run it " +
		"from a local connection, otherwise you need to set this option in the configuration file, and then restart the server."
	errNoSuchClient = "ERR No such client"
	errKillID       = "ERR client-id should be greater than 0"
	errMaxAge       = "ERR maxage is not an integer or out of range"
	errMaxAgeLow    = "ERR maxage should be greater than 0"
	errMonitorKeys  = "ERR Replica can't interact with the keyspace"
	errPauseMode    = "ERR CLIENT PAUSE mode must be WRITE or ALL"
	errUnblocked    = "UNBLOCKED client unblocked via CLIENT UNBLOCK"
	errLocalLogs    = "ERR value is out of range, value must between 0 and 1"
	errNotPositive  = "ERR value is out of range, must be positive"
	errNoLog        = "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled."
	errUnblock      = "ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR"
	// Dunlin's own texts.
	errSwapDB    = "ERR SWAPDB is not supported: every node has a part of each database, and the nodes cannot swap them at one moment"
	errSleepLong = "ERR DEBUG SLEEP is for 300 seconds at most"
)

// AppendTooManyClients appends the error for a connection beyond the limit of clients.
func AppendTooManyClients(dst []byte) []byte { return resp.AppendError(dst, errTooMany) }
