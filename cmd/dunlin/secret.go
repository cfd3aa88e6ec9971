package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
)

// leastSecret is the least length of a secret in bytes. 16 random bytes cannot be guessed; a
// shorter secret was probably typed.
const leastSecret = 16

// readSecret returns the cluster's secret, or nil without a file. White space around the secret is
// not part of it: editors and `echo` add a line end.
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

// adminToken returns the token that a request must carry to change something at a member's admin
// address. It is derived from the secret, so that the secret itself never crosses plain HTTP.
// Without a secret it is "".
func adminToken(secret []byte) string {
	if secret == nil {
		return ""
	}
	h := hmac.New(sha256.New, secret)
	h.Write([]byte("dunlin admin token"))
	return hex.EncodeToString(h.Sum(nil))
}
