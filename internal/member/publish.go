package member

import "github.com/dunlin-cache/dunlin/internal/resp"

// AppendPublish appends PUBLISH: command is that of the client.
func AppendPublish(dst []byte, command string, channel, message []byte) []byte {
	dst = resp.AppendBulkString(AppendVerb(dst, VerbPublish, 3), command)
	return resp.AppendBulk(resp.AppendBulk(dst, channel), message)
}

// Publish sends a request that AppendPublish has made, and returns how many subscribers the message was sent to. If
// sent is false, nothing was published: a connection that has rested may be closed, which a message must not find out.
func (p *Peer) Publish(request []byte) (subscribers int64, sent bool, err error) {
	if _, err = p.Call(VerbChallenge); err != nil {
		return 0, false, err
	}
	reply, err := p.exchange(request)
	if err != nil {
		return 0, true, err
	}
	subscribers, ok := resp.DecodeInt(reply)
	if !ok {
		return 0, true, p.malformed()
	}
	return subscribers, true, nil
}
