package main

import (
	"context"
	"fmt"
	"time"
)

// messages has the operations that the scenario needs on channels.
type messages interface {
	// listen subscribes on a connection of its own, which stays open to the end of the program. It returns when
	// the server has confirmed. hear gets each message.
	listen(ctx context.Context, how listening, name string, hear func(message)) error
	publish(ctx context.Context, channel, text string) (int64, error)
}

// sharded is for the libraries with an API for shard channels.
type sharded interface {
	publishToShard(ctx context.Context, channel, text string) (int64, error)
}

// listening is a way to subscribe.
type listening int

const (
	toChannel listening = iota
	toPattern
	toShard // channels
)

// message is what a listener hears. pattern is "" if it listens to a channel.
type message struct{ pattern, channel, text string }

const (
	sent           = 20 // messages
	messageTimeout = 10 * time.Second
)

// ear collects what one listener hears.
type ear chan message

func listenTo(s *scenario, how listening, name string) (ear, error) {
	heard := make(ear, 2*sent)
	err := s.client.listen(s.ctx, how, name, func(m message) { heard <- m })
	if err != nil {
		return nil, fmt.Errorf("subscribing to %s: %w", name, err)
	}
	return heard, nil
}

// hears returns an error unless the messages are heard, each once and in order.
func (e ear) hears(pattern, channel string, texts []string) error {
	timeout := time.After(messageTimeout)
	for _, text := range texts {
		select {
		case m := <-e:
			if want := (message{pattern, channel, text}); m != want {
				return fmt.Errorf("%q is heard, want %q", m, want)
			}
		case <-timeout:
			return fmt.Errorf("%q is not heard of %s", text, channel)
		}
	}
	return nil
}

// publish has a channel and a pattern heard.
func (s *scenario) publish() error {
	channel, pattern := s.key("news"), s.key("ne*")
	plain, err := listenTo(s, toChannel, channel)
	if err != nil {
		return err
	}
	matching, err := listenTo(s, toPattern, pattern)
	if err != nil {
		return err
	}
	texts := s.keys("message", sent)
	for _, text := range texts {
		n, err := s.client.publish(s.ctx, channel, text)
		if err := want("PUBLISH", n, 2, err); err != nil {
			return err
		}
	}
	if err := plain.hears("", channel, texts); err != nil {
		return err
	}
	return matching.hears(pattern, channel, texts)
}

// publishToShard has a shard channel heard, and not by those who listen to a channel of that name.
func (s *scenario) publishToShard() error {
	channel := s.key("shard")
	heard, err := listenTo(s, toShard, channel)
	if err != nil {
		return err
	}
	others, err := listenTo(s, toChannel, channel)
	if err != nil {
		return err
	}
	texts := s.keys("message", sent)
	for _, text := range texts {
		n, err := s.client.(sharded).publishToShard(s.ctx, channel, text)
		if err := want("SPUBLISH", n, 1, err); err != nil {
			return err
		}
	}
	if err := heard.hears("", channel, texts); err != nil {
		return err
	}
	n, err := s.client.publish(s.ctx, channel, "plain")
	if err := want("PUBLISH", n, 1, err); err != nil {
		return err
	}
	return others.hears("", channel, []string{"plain"})
}
