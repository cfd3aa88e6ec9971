package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
)

const (
	// leastSecret is the least length of a secret in bytes. 16 random bytes cannot be guessed; a
	// shorter secret was probably typed.
	leastSecret = 16
	// mostSecrets is how many secrets a file may have. A rotation needs two.
	mostSecrets = 8
)

// readSecrets returns the cluster's secrets, or nil without a file.
func readSecrets(file string) ([][]byte, error) {
	if file == "" {
		return nil, nil
	}
	text, err := readShort(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read secret: %w", err)
	}
	secrets, err := parseSecrets(text)
	if err != nil {
		return nil, fmt.Errorf("cannot use secret of %q: %w", file, err)
	}
	return secrets, nil
}

// parseSecrets splits a secret file into its lines: at least one secret, and none twice. White
// space around a line is not part of the secret, because editors and `echo` add some.
func parseSecrets(text []byte) (secrets [][]byte, err error) {
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 || slices.ContainsFunc(secrets, func(s []byte) bool { return bytes.Equal(s, line) }) {
			continue
		}
		if len(line) < leastSecret {
			return nil, fmt.Errorf("it has a line of %d bytes, and each line is a secret of at least %d (try: openssl rand -hex 32)",
				len(line), leastSecret)
		}
		secrets = append(secrets, line)
	}
	switch {
	case len(secrets) == 0:
		return nil, fmt.Errorf("it is empty, want a secret of at least %d bytes (try: openssl rand -hex 32)", leastSecret)
	case len(secrets) > mostSecrets:
		return nil, fmt.Errorf("it has %d secrets, want at most %d", len(secrets), mostSecrets)
	}
	return secrets, nil
}

// addTokenFile registers the flag for the admin token of a command that asks members.
func addTokenFile(c *cobra.Command, file *string) {
	c.Flags().StringVar(file, "admin-token-file", "", "file with the token of the members' admin addresses")
}

// readToken returns the first token of a file, or "" without a file.
func readToken(file string) (string, error) {
	tokens, err := readSecrets(file)
	if err != nil || len(tokens) == 0 {
		return "", err
	}
	return string(tokens[0]), nil
}

// newSecret makes up a secret for a cluster whose members are all in this process.
func newSecret() []byte {
	secret := make([]byte, 32)
	rand.Read(secret) // never fails: it ends the process instead
	return secret
}

// adminTokens returns the tokens of which a request must carry one to change something at a
// member's admin address. They are derived from the secrets, so that these never cross plain HTTP.
func adminTokens(secrets [][]byte) (tokens []string) {
	for _, s := range secrets {
		h := hmac.New(sha256.New, s)
		h.Write([]byte("dunlin admin token"))
		tokens = append(tokens, hex.EncodeToString(h.Sum(nil)))
	}
	return tokens
}
