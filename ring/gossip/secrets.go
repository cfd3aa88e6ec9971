package gossip

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/hashicorp/memberlist"
)

// SetSecrets replaces the cluster's secrets. This member encrypts with the first one, and
// understands whoever encrypts with any of them. An agent that was started without a secret cannot
// get one, nor the other way round.
func (a *Agent) SetSecrets(secrets [][]byte) error {
	if a.keyring == nil || len(secrets) == 0 {
		return fmt.Errorf("cannot begin or cease to encrypt gossip while it runs")
	}
	return turn(a.keyring, gossipKeys(secrets))
}

// newKeyring returns nil, which stands for no encryption, without secrets.
func newKeyring(secrets [][]byte) (*memberlist.Keyring, error) {
	if len(secrets) == 0 {
		return nil, nil
	}
	keys := gossipKeys(secrets)
	k, err := memberlist.NewKeyring(keys, keys[0])
	if err != nil {
		return nil, fmt.Errorf("cannot encrypt gossip: %w", err)
	}
	return k, nil
}

// gossipKeys derives a key from each secret. The prefix keeps them apart from other uses of the
// secrets.
func gossipKeys(secrets [][]byte) (keys [][]byte) {
	for _, s := range secrets {
		key := sha256.Sum256(append([]byte("dunlin gossip\x00"), s...))
		if !contains(keys, key[:]) {
			keys = append(keys, key[:])
		}
	}
	return keys
}

func contains(keys [][]byte, key []byte) bool {
	return slices.ContainsFunc(keys, func(k []byte) bool { return bytes.Equal(k, key) })
}

// turn makes keys those of the ring. The first of them is in use before any other goes.
func turn(k *memberlist.Keyring, keys [][]byte) error {
	for _, key := range keys {
		if err := k.AddKey(key); err != nil {
			return fmt.Errorf("cannot use gossip key: %w", err)
		}
	}
	_ = k.UseKey(keys[0]) // fails for unknown keys only
	unwanted := func(key []byte) bool { return !contains(keys, key) }
	// RemoveKey moves the keys behind the removed one in a list that others are reading. So only
	// the last one is ever removed.
	if slices.ContainsFunc(k.GetKeys()[:len(keys)], unwanted) {
		for _, key := range slices.Backward(keys) {
			_ = k.UseKey(key)
		}
	}
	for have := k.GetKeys(); len(have) > len(keys); have = k.GetKeys() {
		if err := k.RemoveKey(have[len(have)-1]); err != nil {
			return fmt.Errorf("cannot drop gossip key: %w", err)
		}
	}
	return nil
}
