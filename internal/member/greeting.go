package member

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"math"
	"strconv"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

const nonceBytes = 32

// NewNonce returns what the next proof on a connection must be about.
func NewNonce() []byte {
	nonce := make([]byte, nonceBytes)
	rand.Read(nonce) // never fails: it ends the process instead
	return nonce
}

// Proof returns the HMAC-SHA256 by which a member shows that it knows the secret. It covers the
// node's nonce, so that a recorded proof cannot be replayed, and the fields by which the member
// describes itself, so that nobody can change them.
func Proof(secret, nonce []byte, fields ...[]byte) []byte {
	h := hmac.New(sha256.New, secret)
	h.Write(nonce)
	for _, f := range fields {
		h.Write([]byte{'|'})
		h.Write(f)
	}
	return h.Sum(nil)
}

// Proves reports whether proof is that of the secret, the nonce and the fields.
func Proves(proof, secret, nonce []byte, fields ...[]byte) bool {
	return hmac.Equal(proof, Proof(secret, nonce, fields...))
}

// Kind separates traffic that must not wait for one another. A proxy's loop has a pipe of each kind
// that it needs, for each protocol version.
type Kind uint8

const (
	// Common carries the small commands of all sessions. Only here a large reply becomes a ticket.
	Common Kind = iota
	// Large carries large requests, and those that take a node long.
	Large
	// Huge carries requests that are too long to be copied, one at a time.
	Huge
	// Fetching carries large replies in pieces.
	Fetching
	// Listening carries what is published; from ring.PubSubLevel on.
	Listening

	Kinds // how many there are
)

var kindNames = [Kinds]string{"common", "large", "huge", "fetch", "listen"}

func (k Kind) String() string { return kindNames[k] }

// Pipe is how a pipe introduces itself.
type Pipe struct {
	Boot       int64 // of the proxy
	Loop       int
	Kind       Kind
	NoTouch    bool   // its commands do not count as uses of keys; from ring.NoTouchLevel on
	Tracks     bool   // the keys that its commands read are tracked; from ring.TrackingLevel on
	Generation uint64 // grows with every connection of the loop
	Version    resp.Version
	Level      uint8 // that the proxy speaks; left out below level 1 of the cluster. See ring.LaterLevel
}

// AppendPipe appends the greeting of a pipe. nonce is what the node has answered to CHALLENGE, nil
// if there is no secret.
func AppendPipe(dst []byte, p Pipe, secret, nonce []byte) []byte {
	fields := [...][]byte{
		strconv.AppendInt(nil, p.Boot, 10),
		strconv.AppendInt(nil, int64(p.Loop), 10),
		p.appendKind(nil),
		strconv.AppendUint(nil, p.Generation, 10),
		strconv.AppendInt(nil, int64(p.Version), 10),
	}
	if p.Level == 0 {
		return appendProven(dst, VerbPipe, 0, secret, nonce, fields[:]...)
	}
	return appendUint(appendProven(dst, VerbPipe, 1, secret, nonce, fields[:]...), uint64(p.Level))
}

// noTouch stands behind the kind of a pipe whose commands do not count as uses of keys.
const noTouch = "-no-touch"

// tracks stands behind that, of a pipe over which the node says what is gone.
const tracks = "-tracks"

func (p *Pipe) appendKind(dst []byte) []byte {
	dst = append(dst, p.Kind.String()...)
	if p.NoTouch {
		dst = append(dst, noTouch...)
	}
	if p.Tracks {
		dst = append(dst, tracks...)
	}
	return dst
}

// ParsePipe reads the arguments of PIPE and splits them into the fields that the proof is about,
// the proof, and what they describe. What a later level has appended is passed over.
func ParsePipe(args [][]byte) (p Pipe, fields [][]byte, proof []byte, ok bool) {
	const proven = 5
	fields, proof = args[:proven], args[proven]
	boot, ok1 := resp.ParseInt(fields[0])
	loop, ok2 := resp.ParseInt(fields[1])
	name, tracked := bytes.CutSuffix(fields[2], []byte(tracks))
	name, untouched := bytes.CutSuffix(name, []byte(noTouch))
	kind, ok3 := parseKind(name)
	generation, ok4 := parseUint(fields[3])
	version, ok5 := resp.ParseInt(fields[4])
	known := version == int64(resp.RESP2) || version == int64(resp.RESP3)
	p = Pipe{
		Boot: boot, Loop: int(loop), Kind: kind, NoTouch: untouched, Tracks: tracked, Generation: generation, Version: resp.Version(version),
	}
	ok6 := true
	if len(args) > proven+1 {
		var level int64
		level, ok6 = resp.ParseInt(args[proven+1])
		ok6 = ok6 && 0 <= level && level <= math.MaxUint8
		p.Level = uint8(level)
	}
	return p, fields, proof, ok1 && ok2 && ok3 && ok4 && ok5 && ok6 && known
}

func parseKind(name []byte) (Kind, bool) {
	for k, n := range kindNames {
		if n == string(name) {
			return Kind(k), true
		}
	}
	return 0, false
}

// AppendPeer appends the greeting of another node. nonce is as for AppendPipe.
func AppendPeer(dst []byte, boot int64, secret, nonce []byte) []byte {
	return appendProven(dst, VerbPeer, 0, secret, nonce, strconv.AppendInt(nil, boot, 10))
}

// ParsePeer splits the arguments of PEER into the fields that the proof is about and the proof.
func ParsePeer(args [][]byte) (fields [][]byte, proof []byte) { return args[:1], args[1] }

// appendProven appends a request up to the proof of its arguments, which is "" without a nonce.
// more arguments follow.
func appendProven(dst []byte, verb string, more int, secret, nonce []byte, fields ...[]byte) []byte {
	dst = AppendVerb(dst, verb, len(fields)+1+more)
	for _, f := range fields {
		dst = resp.AppendBulk(dst, f)
	}
	if nonce == nil {
		return resp.AppendBulk(dst, nil)
	}
	return resp.AppendBulk(dst, Proof(secret, nonce, fields...))
}
