package main

import (
	"bytes"
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"
	"os"
)

// leastSecret is the fewest bytes that a secret may have. 16 random bytes
// cannot be guessed; a shorter one was probably typed.
const leastSecret = 16

// keys are what members use in place of the cluster's secret. Each use has a
// key of its own, so that what one protocol might leak is of no use in another.
// Both are nil without a secret.
type keys struct {
	gossip []byte // 32 bytes: AES-256 of gossip packets
	data   []byte // 32 bytes: proves membership on a node's data port
}

// readKeys derives the keys from the secret in a file. White space around the
// secret is not part of it: editors and `echo` add a line end.
func readKeys(file string) (keys, error) {
	if file == "" {
		return keys{}, nil
	}
	secret, err := os.ReadFile(file)
	if err != nil {
		return keys{}, fmt.Errorf("cannot read secret: %w", err)
	}
	secret = bytes.TrimSpace(secret)
	if len(secret) < leastSecret {
		return keys{}, fmt.Errorf("cannot use secret of %q: it has %d bytes, want at least %d (try: openssl rand -hex 32)",
			file, len(secret), leastSecret)
	}
	gossip, err := hkdf.Key(sha256.New, secret, nil, "dunlin gossip 1", 32)
	if err != nil {
		return keys{}, fmt.Errorf("cannot derive gossip key: %w", err)
	}
	data, err := hkdf.Key(sha256.New, secret, nil, "dunlin data 1", 32)
	if err != nil {
		return keys{}, fmt.Errorf("cannot derive data key: %w", err)
	}
	return keys{gossip: gossip, data: data}, nil
}
