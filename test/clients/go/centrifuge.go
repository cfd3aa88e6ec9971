package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/centrifugal/centrifuge"
)

const (
	// centrifugeChannels lie on all nodes, and their history in the pinned database.
	centrifugeChannels = 8
	centrifugeSent     = 10
	historySize        = 100_000
)

// heard is a broker's event handler: what each channel has heard.
type heard struct {
	mu   sync.Mutex
	data map[string][]string
}

func (h *heard) HandlePublication(
	ch string, pub *centrifuge.Publication, at centrifuge.StreamPosition, _ bool, _ *centrifuge.Publication,
) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.data[ch] = append(h.data[ch], fmt.Sprint(string(pub.Data), " at ", at.Offset))
	return nil
}

func (*heard) HandleJoin(string, *centrifuge.ClientInfo) error  { return nil }
func (*heard) HandleLeave(string, *centrifuge.ClientInfo) error { return nil }

// await waits until each channel has heard n messages, and checks that it has heard each once, in
// order.
func (h *heard) await(n int) error {
	return untilItWorks(func() error {
		h.mu.Lock()
		defer h.mu.Unlock()
		for i := range centrifugeChannels {
			got := h.data[channelName(i)]
			if len(got) < n {
				return fmt.Errorf("channel %d has heard %d of %d messages", i, len(got), n)
			}
			for at, data := range got {
				if want := fmt.Sprint("message ", at, " at ", at+1); data != want {
					return fmt.Errorf("channel %d has heard %q, want %q", i, data, want)
				}
			}
		}
		return nil
	})
}

func channelName(i int) string { return fmt.Sprint("news", i) }

// centrifugeBroker returns a broker, as each process of a cluster of Centrifugo has one.
func centrifugeBroker(addr string, h centrifuge.BrokerEventHandler) (
	*centrifuge.RedisBroker, *centrifuge.RedisPresenceManager, error,
) {
	node, err := centrifuge.New(centrifuge.Config{})
	if err != nil {
		return nil, nil, err
	}
	shard, err := centrifuge.NewRedisShard(node, centrifuge.RedisShardConfig{Address: "redis://" + addr})
	if err != nil {
		return nil, nil, err
	}
	shards := []*centrifuge.RedisShard{shard}
	broker, err := centrifuge.NewRedisBroker(node, centrifuge.RedisBrokerConfig{Shards: shards})
	if err != nil {
		return nil, nil, err
	}
	presence, err := centrifuge.NewRedisPresenceManager(node, centrifuge.RedisPresenceManagerConfig{Shards: shards})
	if err != nil {
		return nil, nil, err
	}
	return broker, presence, broker.RegisterBrokerEventHandler(h)
}

// centrifugeSteps publishes by one broker what the other one hears. A script adds a message to a
// channel's history and publishes it.
func centrifugeSteps(addr string) []step {
	var one, two *centrifuge.RedisBroker
	var presence *centrifuge.RedisPresenceManager
	ears := &heard{data: make(map[string][]string)}
	sent := 0
	send := func() error {
		for i := range centrifugeChannels {
			_, err := one.Publish(channelName(i), fmt.Append(nil, "message ", sent), centrifuge.PublishOptions{
				HistorySize: historySize, HistoryTTL: time.Hour, IdempotencyKey: fmt.Sprint("message", sent),
			})
			if err != nil {
				return err
			}
		}
		sent++
		return nil
	}
	publish := func(context.Context) (err error) {
		if one, presence, err = centrifugeBroker(addr, &heard{data: make(map[string][]string)}); err != nil {
			return err
		}
		if two, _, err = centrifugeBroker(addr, ears); err != nil {
			return err
		}
		for i := range centrifugeChannels {
			if err := two.Subscribe(channelName(i)); err != nil {
				return err
			}
		}
		for range centrifugeSent {
			if err := send(); err != nil {
				return err
			}
		}
		sent-- // the last ones again: they have been published
		if err := send(); err != nil {
			return err
		}
		return ears.await(centrifugeSent)
	}
	history := func(context.Context) error {
		all := centrifuge.HistoryOptions{Filter: centrifuge.HistoryFilter{Limit: -1}}
		for i := range centrifugeChannels {
			messages, top, err := two.History(channelName(i), all)
			if err := want("messages", len(messages), sent, err); err != nil {
				return err
			}
			if err := want("offset", top.Offset, uint64(sent), nil); err != nil {
				return err
			}
		}
		return nil
	}
	present := func(context.Context) error {
		for i := range 20 {
			info := &centrifuge.ClientInfo{ClientID: fmt.Sprint("client", i), UserID: fmt.Sprint(i % 5)}
			if err := presence.AddPresence("room", info.ClientID, info); err != nil {
				return err
			}
		}
		if err := presence.RemovePresence("room", "client7", "2"); err != nil {
			return err
		}
		stats, err := presence.PresenceStats("room")
		if err := want("clients", stats.NumClients, 19, err); err != nil {
			return err
		}
		return want("users", stats.NumUsers, 5, nil)
	}
	replace := func(ctx context.Context) error {
		if err := whileReplaced(send); err != nil {
			return err
		}
		if err := ears.await(sent); err != nil {
			return err
		}
		return history(ctx)
	}
	crash := func(ctx context.Context) error { return centrifugeCrash(one, two, ears) }
	return []step{
		{"publish", publish}, {"history", history}, {"presence", present}, {"replace", replace}, {"crash", crash},
	}
}

// centrifugeCrash publishes while a node is killed. Messages that were answered are in the history,
// but those of the node's last moments. What is published while a connection is broken is not
// heard, as with Redis: subscribers read it in the history. Nothing is heard twice or out of order.
func centrifugeCrash(one, two *centrifuge.RedisBroker, ears *heard) error {
	var answered [centrifugeChannels]map[string]time.Time
	for i := range answered {
		answered[i] = make(map[string]time.Time)
	}
	n := 0
	send := func() (all error) {
		for i := range centrifugeChannels {
			data := fmt.Sprintf("crash %06d", n)
			_, err := one.Publish(channelName(i), []byte(data), centrifuge.PublishOptions{
				HistorySize: historySize, HistoryTTL: time.Hour, IdempotencyKey: data,
			})
			if err == nil {
				answered[i][data] = time.Now()
			}
			all = errors.Join(all, err)
		}
		n++
		return all
	}
	killed, refused, err := whileCrashed(send)
	if err != nil {
		return err
	}
	rounds := n
	// Behind it, each channel hears again.
	err = untilItWorksFor(workTimeout, func() error {
		last := fmt.Sprintf("crash %06d", n)
		return errors.Join(send(), ears.hasHeard(last))
	})
	if err != nil {
		return err
	}
	var lost []time.Time
	all := centrifuge.HistoryOptions{Filter: centrifuge.HistoryFilter{Limit: -1}}
	for i := range centrifugeChannels {
		kept, _, err := two.History(channelName(i), all)
		if err != nil {
			return err
		}
		times := make(map[string]int)
		for at, message := range kept {
			if at > 0 && message.Offset != kept[at-1].Offset+1 {
				return fmt.Errorf("behind offset %d comes %d", kept[at-1].Offset, message.Offset)
			}
			times[string(message.Data)]++
		}
		for data, at := range answered[i] {
			switch times[data] {
			case 0:
				lost = append(lost, at)
			case 1:
			default:
				return fmt.Errorf("%q is in the history %d times", data, times[data])
			}
		}
	}
	missed, err := ears.missed(answered)
	fmt.Printf("count %d messages in %d rounds: %d rounds with errors, %d lost, %d not heard\n",
		rounds*centrifugeChannels, rounds, refused, len(lost), missed)
	return errors.Join(err, want("lost, but not in the last moments", outside(lost, killed), 0, nil))
}

// texts returns what a channel has heard that was published in a crash.
func (h *heard) texts(channel int) (texts []string) {
	for _, line := range h.data[channelName(channel)] {
		if text, _, _ := strings.Cut(line, " at "); strings.HasPrefix(text, "crash ") {
			texts = append(texts, text)
		}
	}
	return texts
}

// hasHeard reports the channels that have heard neither this message nor a later one.
func (h *heard) hasHeard(text string) (err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range centrifugeChannels {
		if all := h.texts(i); len(all) == 0 || all[len(all)-1] < text {
			err = errors.Join(err, fmt.Errorf("channel %d has not heard %q", i, text))
		}
	}
	return err
}

// missed returns how many messages that were answered were not heard. Each was heard once at most,
// and in order.
func (h *heard) missed(answered [centrifugeChannels]map[string]time.Time) (missed int, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range centrifugeChannels {
		all := h.texts(i)
		for at := 1; at < len(all); at++ {
			if all[at] <= all[at-1] {
				err = errors.Join(err, fmt.Errorf("channel %d has heard %q behind %q", i, all[at], all[at-1]))
			}
		}
		for text := range answered[i] {
			if !slices.Contains(all, text) {
				missed++
			}
		}
	}
	return missed, err
}
