package member

import "sync/atomic"

// Secrets are the cluster's secrets as one process knows them. It proves that it knows the first
// one, and believes whoever proves to know any of them, so that members can change their secret one
// by one. Without a secret, everybody is believed: the zero value and nil have none. Any goroutine
// may call the methods.
type Secrets struct{ known atomic.Pointer[[][]byte] }

// NewSecrets returns Secrets with a list, which Set describes.
func NewSecrets(list ...[]byte) *Secrets {
	s := &Secrets{}
	s.Set(list)
	return s
}

// Set replaces the list. It is kept, and must not change afterwards.
func (s *Secrets) Set(list [][]byte) { s.known.Store(&list) }

// All returns the list, which the caller must not change.
func (s *Secrets) All() [][]byte {
	if s == nil {
		return nil
	}
	if list := s.known.Load(); list != nil {
		return *list
	}
	return nil
}

// First returns the secret that this process proves to know, or nil if there is none.
func (s *Secrets) First() []byte {
	if all := s.All(); len(all) > 0 {
		return all[0]
	}
	return nil
}

// ProvedBy reports whether proof is that of any of the secrets, the nonce and the fields.
func (s *Secrets) ProvedBy(proof, nonce []byte, fields ...[]byte) bool {
	for _, secret := range s.All() {
		if Proves(proof, secret, nonce, fields...) {
			return true
		}
	}
	return false
}
