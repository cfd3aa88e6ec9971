// Package keyevent has the classes of keyspace notifications, and the names of the channels on which these
// are published. It imports nothing of Dunlin's, and has no state.
//
//	SET k v   __keyspace@0__:k    set     class K
//	          __keyevent@0__:set  k       class E
//
// The number is that of the key's database.
package keyevent
