package wide

import (
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/proxy/order"
	"github.com/dunlin-cache/dunlin/ring"
)

// A question that was lost while another node took long is asked again, although the deadline has passed.
// Rounds without a gain end then.
func TestRoundsBehindASlowAnswer(t *testing.T) {
	const late = 6 * time.Second
	m := order.New(order.Config{})
	for _, anew := range []bool{false, true} {
		r := Rounds{Deadline: 5 * time.Second, Anew: anew, begun: true}
		r.want.AddFrom(0)
		var share ring.PartitionSet
		share.Add(7)
		r.asked = []asked{{nil, share}}
		if !r.Expired(late) {
			t.Error("a round may begin without a gain")
		}
		r.Cover(m, 0, &share)
		if r.Expired(late) != anew {
			t.Errorf("anew %v: another round may begin: %v", anew, anew)
		}
		if r.Ask(m, order.Request{}, nil, late); !r.Expired(late) {
			t.Error("a round may begin behind one without a gain")
		}
	}
}
