package tlsbridge

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"
)

// rereadEvery is how often changed files are looked for.
const rereadEvery = 5 * time.Second

// Files are the paths of PEM files: a certificate with its chain, its private key, and the CA that
// must have signed the other side's certificate. Without CA the other side shows none.
type Files struct{ Cert, Key, CA string }

// Certificates are the contents of Files, which KeepFresh reads again when they change.
type Certificates struct {
	files  Files
	now    atomic.Pointer[material]
	server *tls.Config
	client *tls.Config
}

// material is one state of the files.
type material struct {
	texts  [3][]byte
	cert   tls.Certificate
	ca     *x509.CertPool // nil: none
	server *tls.Config    // one for all connections, so that sessions are resumed
}

// Load reads the files for the first time.
func Load(f Files) (*Certificates, error) {
	c := &Certificates{files: f}
	m, err := c.read()
	if err != nil {
		return nil, err
	}
	c.now.Store(m)
	c.server = &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return c.now.Load().server, nil },
	}
	c.client = &tls.Config{
		MinVersion:           tls.VersionTLS12,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &c.now.Load().cert, nil },
		// Members are reached at addresses that no certificate can know beforehand: verify checks
		// everything except names.
		InsecureSkipVerify: true,
		VerifyConnection:   c.verify,
	}
	return c, nil
}

func (c *Certificates) read() (*material, error) {
	m := &material{}
	for i, f := range []string{c.files.Cert, c.files.Key, c.files.CA} {
		if f == "" {
			continue
		}
		text, err := os.ReadFile(f)
		if err != nil {
			return nil, fmt.Errorf("cannot read certificates: %w", err)
		}
		m.texts[i] = text
	}
	var err error
	if m.cert, err = tls.X509KeyPair(m.texts[0], m.texts[1]); err != nil {
		return nil, fmt.Errorf("cannot use certificate %s with key %s: %w", c.files.Cert, c.files.Key, err)
	}
	m.server = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{m.cert}}
	if c.files.CA != "" {
		m.ca = x509.NewCertPool()
		if !m.ca.AppendCertsFromPEM(m.texts[2]) {
			return nil, fmt.Errorf("cannot use CA %s: it has no certificate in PEM form", c.files.CA)
		}
		m.server.ClientCAs, m.server.ClientAuth = m.ca, tls.RequireAndVerifyClientCert
	}
	return m, nil
}

// verify checks the chain of a member's certificate.
func (c *Certificates) verify(s tls.ConnectionState) error {
	if len(s.PeerCertificates) == 0 {
		return errors.New("the other side shows no certificate")
	}
	o := x509.VerifyOptions{Roots: c.now.Load().ca, Intermediates: x509.NewCertPool()}
	for _, i := range s.PeerCertificates[1:] {
		o.Intermediates.AddCert(i)
	}
	_, err := s.PeerCertificates[0].Verify(o)
	return err
}

// KeepFresh reads the files again when they have changed, until ctx ends. If the new files cannot
// be used, the old certificates stay in use; KeepFresh logs that once a change.
func (c *Certificates) KeepFresh(ctx context.Context, log *slog.Logger) {
	tick := time.NewTicker(rereadEvery)
	defer tick.Stop()
	last := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		changed, err := c.refresh()
		switch {
		case err != nil && err.Error() != last:
			log.Error("cannot renew certificates, the old ones stay in use", "error", err)
		case changed:
			log.Info("certificates renewed", "cert", c.files.Cert)
		}
		last = ""
		if err != nil {
			last = err.Error()
		}
	}
}

func (c *Certificates) refresh() (changed bool, err error) {
	m, err := c.read()
	if err != nil {
		return false, err
	}
	for i, text := range c.now.Load().texts {
		changed = changed || !bytes.Equal(text, m.texts[i])
	}
	if changed {
		c.now.Store(m)
	}
	return changed, nil
}
