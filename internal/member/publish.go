package member

import (
	"errors"
	"net"
	"slices"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// AppendPublish appends PUBLISH: command is that of the client.
func AppendPublish(dst []byte, command string, channel, message []byte) []byte {
	dst = resp.AppendBulkString(AppendVerb(dst, VerbPublish, 3), command)
	return resp.AppendBulk(resp.AppendBulk(dst, channel), message)
}

// Publish sends requests that AppendPublish has made, together, and calls heard for each of their replies, in order:
// with how many subscribers the message was sent to, or with a refusal. If sent is false, nothing was published: a
// connection that has rested may be closed, which messages must not find out.
func (p *Peer) Publish(requests [][]byte, heard func(subscribers int64, refusal *Refusal)) (sent bool, err error) {
	if _, err = p.Call(VerbChallenge); err != nil {
		return false, err
	}
	p.in, p.used, p.scanner = p.in[:0], 0, resp.Scanner{}
	all := net.Buffers(slices.Clone(requests))
	if _, err = all.WriteTo(p.Conn); err != nil {
		return true, err
	}
	for range requests {
		reply, err := p.receive()
		var refusal *Refusal
		if err != nil && !errors.As(err, &refusal) {
			return true, err
		}
		subscribers, ok := resp.DecodeInt(reply)
		if !ok && refusal == nil {
			return true, p.malformed()
		}
		heard(subscribers, refusal)
	}
	return true, nil
}
