package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
)

// leastSecret is the fewest bytes that a secret may have. 16 random bytes
// cannot be guessed; a shorter one was probably typed.
const leastSecret = 16

// readSecret returns the cluster's secret; nil without a file. White space around
// it is not part of it: editors and `echo` add a line end.
func readSecret(file string) ([]byte, error) {
	if file == "" {
		return nil, nil
	}
	secret, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read secret: %w", err)
	}
	secret = bytes.TrimSpace(secret)
	if len(secret) < leastSecret {
		return nil, fmt.Errorf("cannot use secret of %q: it has %d bytes, want at least %d (try: openssl rand -hex 32)",
			file, len(secret), leastSecret)
	}
	return secret, nil
}

// adminToken is what a request that changes something must bring to a member's admin
// address: derived from the secret, so that the secret itself never goes over plain
// HTTP. "" without a secret.
func adminToken(secret []byte) string {
	if secret == nil {
		return ""
	}
	h := hmac.New(sha256.New, secret)
	h.Write([]byte("dunlin admin token"))
	return hex.EncodeToString(h.Sum(nil))
}
