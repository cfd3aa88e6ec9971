package tlsbridge

import (
	"crypto/tls"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/certtest"
)

// TestNoTLS checks that a connection without TLS is closed, and that no loop gets it.
func TestNoTLS(t *testing.T) {
	s := serveFor(t, mustLoad(t, files(t, certtest.New(t), "server", false)), 50*time.Millisecond)
	for i, said := range []string{"PING\r\n", "GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\xff\xff", ""} {
		c, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Write([]byte(said)); err != nil {
			t.Fatal(err)
		}
		_ = c.SetReadDeadline(time.Now().Add(patience))
		if _, err := io.Copy(io.Discard, c); err != nil && strings.Contains(err.Error(), "timeout") {
			t.Errorf("%q: not closed", said)
		}
		for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
			if _, failed := s.Stats(); failed == int64(i+1) {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%q: not counted", said)
			}
		}
	}
	if len(s.given) > 0 || s.door.running() != 0 {
		t.Errorf("%d connections were given away, %d handshakes run", len(s.given), s.door.running())
	}
}

func TestOldVersions(t *testing.T) {
	a := certtest.New(t)
	s := serve(t, mustLoad(t, files(t, a, "server", false)))
	if _, err := tls.Dial("tcp", s.addr, &tls.Config{RootCAs: a.Pool, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}); err == nil {
		t.Error("TLS 1.1 is accepted")
	}
}

// TestMutual connects a member of the cluster, a client that trusts another CA, and one with a
// certificate of another CA.
func TestMutual(t *testing.T) {
	ours, others := certtest.New(t), certtest.New(t)
	s := serve(t, mustLoad(t, files(t, ours, "server", true)))
	c, err := NewDialer(mustLoad(t, files(t, ours, "client", true))).Dial(t.Context(), s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	inner := s.accepted(t)
	if _, err := inner.Write([]byte("welcome")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, make([]byte, 7)); err != nil {
		t.Error(err)
	}
	if _, err := NewDialer(mustLoad(t, files(t, others, "client", true))).Dial(t.Context(), s.addr); err == nil || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("a client believes a server of another CA: %v", err)
	}
	cert, key := others.Issue(t, "stranger")
	// The stranger trusts our CA, and shows a certificate of another one.
	stranger := mustLoad(t, Files{cert, key, ours.CA})
	if c, err := NewDialer(stranger).Dial(t.Context(), s.addr); err == nil {
		// In TLS 1.3 a client learns of its refusal when it reads.
		if _, err := c.Read(make([]byte, 1)); err == nil || !strings.Contains(err.Error(), "certificate") {
			t.Errorf("a server believes a client of another CA: %v", err)
		}
		c.Close()
	}
	if len(s.given) > 0 {
		t.Error("a stranger's connection came through")
	}
}

// TestDialFD checks the loop's side of an outgoing connection.
func TestDialFD(t *testing.T) {
	a := certtest.New(t)
	s := serve(t, mustLoad(t, files(t, a, "server", true)))
	fd, err := NewDialer(mustLoad(t, files(t, a, "client", true))).DialFD(t.Context(), s.addr)
	if err != nil {
		t.Fatal(err)
	}
	c, err := connOf(fd)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	inner := s.accepted(t)
	if _, err := c.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	_ = inner.SetReadDeadline(time.Now().Add(patience))
	if got := make([]byte, 5); must(io.ReadFull(inner, got)) != nil || string(got) != "hello" {
		t.Errorf("got %q", got)
	}
}

func must(_ int, err error) error { return err }

// TestRenewal checks that new connections use new files, unless these are unusable.
func TestRenewal(t *testing.T) {
	a := certtest.New(t)
	f := files(t, a, "server", false)
	c := mustLoad(t, f)
	s := serve(t, c)
	serial := func() string {
		t.Helper()
		conn := dialTLS(t, s.addr, &tls.Config{RootCAs: a.Pool})
		s.accepted(t)
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	old := dialTLS(t, s.addr, &tls.Config{RootCAs: a.Pool})
	inner, first := s.accepted(t), serial()
	if changed, err := c.refresh(); changed || err != nil {
		t.Errorf("nothing changed: %t, %v", changed, err)
	}
	a.Issue(t, "server") // the same files
	if changed, err := c.refresh(); !changed || err != nil {
		t.Errorf("not renewed: %t, %v", changed, err)
	}
	second := serial()
	if second == first {
		t.Error("the old certificate is shown")
	}
	if err := os.WriteFile(f.Cert, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if changed, err := c.refresh(); changed || err == nil {
		t.Errorf("nonsense is taken: %t, %v", changed, err)
	}
	if got := serial(); got != second {
		t.Errorf("certificate %s is shown, want %s", got, second)
	}
	if _, err := inner.Write([]byte("x")); err != nil {
		t.Error(err)
	}
	if _, err := io.ReadFull(old, make([]byte, 1)); err != nil {
		t.Errorf("a connection did not survive the renewal: %v", err)
	}
}

func TestLoadErrors(t *testing.T) {
	a := certtest.New(t)
	cert, key := a.Issue(t, "one")
	_, otherKey := a.Issue(t, "two")
	for _, c := range []struct {
		files Files
		want  string
	}{
		{Files{"missing.pem", key, ""}, "no such file"},
		{Files{cert, otherKey, ""}, "private key does not match"},
		{Files{cert, key, key}, "no certificate in PEM form"},
	} {
		if _, err := Load(c.files); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.files, err, c.want)
		}
	}
}
