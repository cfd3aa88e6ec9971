package control

import (
	"crypto/subtle"
	"net/http"
	"strings"
	"sync/atomic"
)

// Tokens are the tokens of which a request must carry one. The zero value and nil have none. Any
// goroutine may call the methods.
type Tokens struct{ valid atomic.Pointer[[]string] }

// NewTokens returns Tokens with a list.
func NewTokens(list ...string) *Tokens {
	t := &Tokens{}
	t.Set(list)
	return t
}

// Set replaces the tokens. list is kept, and must not change afterwards.
func (t *Tokens) Set(list []string) { t.valid.Store(&list) }

// All returns the tokens, which the caller must not change.
func (t *Tokens) All() []string {
	if t == nil {
		return nil
	}
	if list := t.valid.Load(); list != nil {
		return *list
	}
	return nil
}

// First returns the first token, "" if there is none.
func (t *Tokens) First() string {
	if all := t.All(); len(all) > 0 {
		return all[0]
	}
	return ""
}

// CarriedBy reports whether a request carries one of the tokens: as a bearer's or, from a browser,
// as the password of any user.
func (t *Tokens) CarriedBy(r *http.Request) bool {
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		if _, given, ok = r.BasicAuth(); !ok {
			return false
		}
	}
	right := 0
	for _, want := range t.All() {
		right |= subtle.ConstantTimeCompare([]byte(given), []byte(want))
	}
	return right == 1
}
