package node

import (
	"testing"

	"github.com/dunlin-cache/dunlin/internal/member"
)

// TestTransactionPublishesElsewhere: a client of a node publishes in a transaction on channels that other nodes have,
// or that lie in another slot than its keys, with and without keys.
func TestTransactionPublishesElsewhere(t *testing.T) {
	nodes, table, key := startLeveledTrio(t)
	here, elsewhere := "{"+key+"}c", keyIn(t, table, 1)
	for i, channel := range []string{here, elsewhere} {
		_, say := listeningPipe(t, nodes[i])
		if got, _ := say(member.Listen{Name: []byte(channel), Count: 3}); got != member.Noted {
			t.Fatalf("LISTEN is answered by %d", got)
		}
	}
	c := dial(t, nodes[0].Addr())
	publishes := []string{"PUBLISH " + elsewhere + " m", "PUBLISH " + here + " m"}
	for _, o := range []struct {
		commands []string
		want     string
	}{
		{append(publishes, "SET "+key+" 1"), "1) (integer) 3\n2) (integer) 3\n3) OK"},
		{append([]string{"SET " + key + " 1"}, publishes...), "1) OK\n2) (integer) 3\n3) (integer) 3"},
		{publishes, "1) (integer) 3\n2) (integer) 3"},
		{publishes[:1], "1) (integer) 3"},
		{[]string{"PUBLISH " + keyIn(t, table, 2) + " m"}, "1) (integer) 0"},
	} {
		if got := c.exec(o.commands...); got != o.want {
			t.Errorf("%q: EXEC answers %s", o.commands, got)
		}
	}
	for _, channel := range []string{here, elsewhere} { // a script does, too, also within a transaction
		for _, keys := range []string{"0", "1 " + key} {
			script := `EVAL "return redis.call('publish', '` + channel + `', 'm')" ` + keys
			c.want(script, "(integer) 3")
			if got := c.exec(script); got != "1) (integer) 3" {
				t.Errorf("%q: EXEC answers %s", script, got)
			}
		}
	}
}
