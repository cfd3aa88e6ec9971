package about

import (
	"strings"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

const (
	errNoConfigFile = "ERR The server is running without a config file"
	errNoACLFile    = "ERR This Redis instance is not configured to use an ACL file. You may want to specify users via the " +
		"ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis configuration file set) in order " +
		"to store users in the Redis configuration."
	errNoModules = "ERR MODULE command not allowed. If the enable-module-command option is set to \"local\", you can run it " +
		"from a local connection, otherwise you need to set this option in the configuration file, and then restart the server."
	// Dunlin's own texts: every Redis server supports these commands.
	errSetUser   = "ERR ACL SETUSER is not supported: there is one user, default, and its password is set when the server starts"
	errShutdown  = "ERR SHUTDOWN is not supported: a server of this cluster is stopped where it was started"
	errNoDisk    = "ERR saving is not supported: this server keeps its data in memory only"
	errReplicaOf = "ERR REPLICAOF is not supported: the cluster itself decides which server keeps which data"
	errNoPFDebug = "ERR PFDEBUG and PFSELFTEST are not supported: they are for the developers of Redis"
	errHImport   = "ERR HIMPORT is not supported: a connection keeps no field names for its hashes here, use HSET"
	errNoSync    = "ERR replication to Redis is not supported: the cluster copies its data among its own servers only"
)

// refuse returns an Answer that is always the same error.
func refuse(text string) Answer {
	return func(dst []byte, _ resp.Version, _ [][]byte) []byte { return resp.AppendError(dst, text) }
}

// none answers with an empty array.
func none(dst []byte, _ resp.Version, _ [][]byte) []byte { return resp.AppendArray(dst, 0) }

// role answers ROLE: every member answers for itself, as a master without replicas.
func role(dst []byte, _ resp.Version, _ [][]byte) []byte {
	dst = resp.AppendArray(dst, 3)
	dst = resp.AppendBulkString(dst, "master")
	dst = resp.AppendInt(dst, 0)
	return resp.AppendArray(dst, 0)
}

// replicaOf answers REPLICAOF host port: only NO ONE, the present state, is accepted.
func replicaOf(dst []byte, _ resp.Version, args [][]byte) []byte {
	if command.EqualFold(args[1], "no") && command.EqualFold(args[2], "one") {
		return resp.AppendOK(dst)
	}
	return resp.AppendError(dst, errReplicaOf)
}

// failover answers FAILOVER [options]: none is in progress, and there is no replica to which a
// client could fail over. ring.Plan decides Dunlin's own failovers.
func failover(dst []byte, _ resp.Version, args [][]byte) []byte {
	if len(args) == 2 && command.EqualFold(args[1], "abort") {
		return resp.AppendError(dst, "ERR No failover in progress.")
	}
	return resp.AppendError(dst, "ERR FAILOVER requires connected replicas.")
}

// shutdown answers SHUTDOWN [options].
func shutdown(dst []byte, _ resp.Version, args [][]byte) []byte {
	for _, option := range args[1:] {
		switch strings.ToLower(string(option)) {
		case "nosave", "save", "now", "force":
		case "abort":
			return resp.AppendError(dst, "ERR No shutdown in progress.")
		default:
			return resp.AppendError(dst, command.ErrSyntax)
		}
	}
	return resp.AppendError(dst, errShutdown)
}

// bgSave answers BGSAVE [SCHEDULE].
func bgSave(dst []byte, _ resp.Version, args [][]byte) []byte {
	if len(args) > 2 || len(args) == 2 && !command.EqualFold(args[1], "schedule") {
		return resp.AppendError(dst, command.ErrSyntax)
	}
	return resp.AppendError(dst, errNoDisk)
}

// lolwut answers LOLWUT [VERSION n [arguments]] with the last line of Redis's reply, which shows
// the version.
func lolwut(dst []byte, v resp.Version, args [][]byte) []byte {
	if len(args) > 2 && command.EqualFold(args[1], "version") {
		if _, ok := resp.ParseInt(args[2]); !ok {
			return resp.AppendError(dst, command.ErrNotInteger)
		}
	}
	return resp.AppendVerbatim(dst, v, "txt", "Redis ver. "+command.RedisVersion+"\n")
}
