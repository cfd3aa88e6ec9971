package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/session"
	"github.com/dunlin-cache/dunlin/metrics/control"
)

const (
	// rereadEvery is how often the files of credentials are looked at for changes.
	rereadEvery = time.Second
	// mostPasswords is how many passwords a file may have.
	mostPasswords = 64
	// mostCredentials bounds such a file, in bytes.
	mostCredentials = 64 << 10
)

// credentials are what a process knows about who it is and whom it believes. Those that come from
// files follow the files.
type credentials struct {
	secrets   *member.Secrets
	passwords *session.Passwords
	orders    *control.Tokens // of requests that change something at the admin address
	readers   *control.Tokens // of requests there for keys, addresses and members

	files []*credentialFile
	// gossip takes new secrets. It is complete before keepFresh runs.
	gossip []func(secrets [][]byte) error
}

// credentialFile is a file of credentials, as it was read last.
type credentialFile struct {
	flag, path string
	text       []byte
	use        func(text []byte) error // refuses a text that is no good
	renewed    atomic.Int64
	failed     atomic.Int64
	last       string // the last failure, so that each is logged once
}

// newCredentials reads the files for the first time.
func newCredentials(o *options) (*credentials, error) {
	c := &credentials{secrets: member.NewSecrets(), passwords: session.NewPasswords(o.requirePass), orders: &control.Tokens{}, readers: &control.Tokens{}}
	if err := c.read("secret-file", o.secretFile, c.useSecrets); err != nil {
		return nil, err
	}
	if err := c.read("requirepass-file", o.requirePassFile, c.usePasswords); err != nil {
		return nil, err
	}
	if err := c.read("admin-token-file", o.adminTokenFile, c.useReaders); err != nil {
		return nil, err
	}
	if o.alone && o.secretFile == "" {
		c.secrets.Set([][]byte{newSecret()}) // nobody knows it, so it gives no token for orders
	}
	return c, nil
}

// read reads a file, if the path is not empty, and keeps it to be read again.
func (c *credentials) read(flag, path string, use func(text []byte) error) error {
	if path == "" {
		return nil
	}
	f := &credentialFile{flag: flag, path: path, use: use}
	if _, err := f.refresh(); err != nil {
		return err
	}
	c.files = append(c.files, f)
	return nil
}

func (c *credentials) useSecrets(text []byte) error {
	secrets, err := parseSecrets(text)
	if err != nil {
		return err
	}
	c.secrets.Set(secrets)
	c.orders.Set(adminTokens(secrets))
	var errs []error
	for _, use := range c.gossip {
		errs = append(errs, use(secrets))
	}
	return errors.Join(errs...)
}

func (c *credentials) useReaders(text []byte) error {
	tokens, err := parseSecrets(text)
	if err != nil {
		return err
	}
	list := make([]string, len(tokens))
	for i, t := range tokens {
		list[i] = string(t)
	}
	c.readers.Set(list)
	return nil
}

func (c *credentials) usePasswords(text []byte) error {
	passwords, err := parsePasswords(text)
	if err != nil {
		return err
	}
	if c.passwords.Needed() {
		c.passwords.Set(passwords)
	} else {
		c.passwords = session.NewPasswords(passwords...)
	}
	return nil
}

// parsePasswords returns the lines of a password file. White space is part of a password, a line
// end is not.
func parsePasswords(text []byte) (passwords []string, err error) {
	for line := range bytes.Lines(text) {
		if line = bytes.TrimRight(line, "\r\n"); len(line) > 0 && !slices.Contains(passwords, string(line)) {
			passwords = append(passwords, string(line))
		}
	}
	switch {
	case len(passwords) == 0:
		return nil, errors.New("it is empty, want a password")
	case len(passwords) > mostPasswords:
		return nil, fmt.Errorf("it has %d passwords, want at most %d", len(passwords), mostPasswords)
	}
	return passwords, nil
}

// keepFresh reads the files again when they have changed, until ctx ends. If the new content cannot
// be used, the old one stays in use.
func (c *credentials) keepFresh(ctx context.Context, log *slog.Logger) {
	if len(c.files) == 0 {
		return
	}
	tick := time.NewTicker(rereadEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, f := range c.files {
			f.keepFresh(log)
		}
	}
}

func (f *credentialFile) keepFresh(log *slog.Logger) {
	changed, err := f.refresh()
	switch {
	case err != nil && err.Error() != f.last:
		f.last = err.Error()
		f.failed.Add(1)
		log.Error("cannot renew credentials, the old ones stay in use", "flag", f.flag, "error", err)
	case err == nil:
		f.last = ""
	}
	if changed && err == nil {
		f.renewed.Add(1)
		log.Info("credentials renewed", "flag", f.flag, "file", f.path)
	}
}

// refresh reads the file, and uses its text if that has changed.
func (f *credentialFile) refresh() (changed bool, err error) {
	text, err := readShort(f.path)
	if err != nil {
		return false, fmt.Errorf("cannot read --%s: %w", f.flag, err)
	}
	if f.text != nil && bytes.Equal(text, f.text) {
		return false, nil
	}
	if err := f.use(text); err != nil {
		return false, fmt.Errorf("cannot use --%s %q: %w", f.flag, f.path, err)
	}
	f.text = text
	return true, nil
}

// readShort reads a file of at most mostCredentials bytes.
func readShort(path string) ([]byte, error) {
	if i, err := os.Stat(path); err == nil && i.Size() > mostCredentials {
		return nil, fmt.Errorf("%s has %d bytes, want at most %d", path, i.Size(), mostCredentials)
	}
	return os.ReadFile(path)
}

// Stats returns how often the file was renewed, and how often its new content could not be used.
func (f *credentialFile) Stats() (renewed, failed int64) { return f.renewed.Load(), f.failed.Load() }
