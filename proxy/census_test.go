package proxy

import (
	"testing"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/proxy/wide"
	"github.com/dunlin-cache/dunlin/ring"
)

// Answers that come when the client has disconnected are dropped: nothing charges them any more.
func TestAnswersForDisconnectedClient(t *testing.T) {
	args := [][]byte{[]byte("KEYS"), []byte("*")}
	q, err := wide.New(&wide.Call{Command: command.ByID(command.Keys), Args: args})
	if err != nil {
		t.Fatal(err)
	}
	c := &census{s: &client{phase: closed}, question: q}
	covered := ring.AllPartitions()
	c.Done(0, append(member.AppendCovered(nil, &covered), resp.AppendBulkStrings(resp.AppendArray(nil, 1), "key")...))
	if q.Size() != 0 {
		t.Errorf("%d bytes of answers are kept", q.Size())
	}
}
