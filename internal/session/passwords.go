package session

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"slices"
	"sync/atomic"
	"time"
)

// passwordGrace is how long passwords that Set has removed are still accepted.
const passwordGrace = time.Minute

// Passwords are those of the clients of a process. Any of them lets a client in. Passwords are
// compared as SHA-256 digests, in constant time. So the time of a refusal reveals neither their
// length nor a common prefix, and a core dump does not contain them. The zero value and nil have
// none: clients need no password. Any goroutine may call the methods.
type Passwords struct{ now atomic.Pointer[passwordList] }

type digest = [sha256.Size]byte

type passwordList struct {
	valid  []digest
	before []digest  // those that Set has replaced
	until  time.Time // until when these are valid too
}

// NewPasswords returns Passwords with the given ones. Empty ones do not count.
func NewPasswords(texts ...string) *Passwords {
	p := &Passwords{}
	if valid := digestsOf(texts); len(valid) > 0 {
		p.now.Store(&passwordList{valid: valid})
	}
	return p
}

// Set replaces the passwords of a process that has some. texts must name at least one. The
// replaced ones are accepted for another minute: clients learn the new ones one by one. Clients
// that are authenticated stay.
func (p *Passwords) Set(texts []string) {
	p.now.Store(&passwordList{valid: digestsOf(texts), before: p.list().valid, until: time.Now().Add(passwordGrace)})
}

// Needed reports whether clients need a password. It does not change.
func (p *Passwords) Needed() bool { return len(p.list().valid) > 0 }

func (p *Passwords) list() *passwordList {
	if p != nil {
		if list := p.now.Load(); list != nil {
			return list
		}
	}
	return &passwordList{}
}

// accepts reports whether a client may enter with a password.
func (p *Passwords) accepts(candidate []byte) bool {
	list, d, right := p.list(), sha256.Sum256(candidate), 0
	for _, v := range list.valid {
		right |= subtle.ConstantTimeCompare(d[:], v[:])
	}
	if len(list.before) > 0 && time.Now().Before(list.until) {
		for _, v := range list.before {
			right |= subtle.ConstantTimeCompare(d[:], v[:])
		}
	}
	return right == 1
}

// hashes returns the passwords as ACL rules show them.
func (p *Passwords) hashes() (texts []string) {
	for _, v := range p.list().valid {
		texts = append(texts, hex.EncodeToString(v[:]))
	}
	return texts
}

func digestsOf(texts []string) (list []digest) {
	for _, t := range texts {
		if d := sha256.Sum256([]byte(t)); t != "" && !slices.Contains(list, d) {
			list = append(list, d)
		}
	}
	return list
}
