package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestTrust(t *testing.T) {
	base := options{listen: "127.0.0.1:6380", gossip: "127.0.0.1:7946", admin: "127.0.0.1:9180"}
	f := func(wantRefused string, change func(*options)) {
		t.Helper()
		o := base
		change(&o)
		err := checkTrust(t.Context(), &o)
		switch {
		case wantRefused == "" && err != nil:
			t.Errorf("%+v: refused: %v", o, err)
		case wantRefused != "" && (err == nil || !strings.HasPrefix(strings.TrimPrefix(err.Error(), "--"), wantRefused)):
			t.Errorf("%+v: error %v, want one about %s", o, err, wantRefused)
		}
	}
	f("", func(*options) {})
	f("", func(o *options) { o.listen = "[::1]:6380" })
	f("", func(o *options) { o.listen = "localhost:6380" })
	f("", func(o *options) { o.join = []string{"127.0.0.2:7946"} })

	f("listen", func(o *options) { o.listen = ":6380" })
	f("listen", func(o *options) { o.listen = "0.0.0.0:6380" })
	f("listen", func(o *options) { o.listen = "[::]:6380" })
	f("listen", func(o *options) { o.listen = "no-such-host.invalid:6380" })
	f("gossip", func(o *options) { o.gossip = "10.0.0.1:7946" })
	f("admin", func(o *options) { o.admin = "0.0.0.0:9180" })
	f("advertise", func(o *options) { o.advertise = "10.0.0.1" })
	f("join", func(o *options) { o.join = []string{"127.0.0.1:7946", "10.0.0.1:7946"} })

	f("", func(o *options) { o.listen, o.insecure = "0.0.0.0:6380", true })

	// Clients with a password are no members.
	needsSecret := "a password for clients needs --secret-file"
	f(needsSecret, func(o *options) { o.requirePass = "x" })
	f(needsSecret, func(o *options) { o.requirePassFile, o.insecure = "x", true })
	f("", func(o *options) { o.requirePass, o.secretFile = "x", "/secret" })
	f("", func(o *options) { o.requirePass, o.alone = "x", true })
	f("", func(o *options) { o.listen, o.secretFile = "0.0.0.0:6380", "/secret" })
}

func TestTrustErrorSaysWhatToDo(t *testing.T) {
	err := checkTrust(t.Context(), &options{listen: "0.0.0.0:6380"})
	for _, want := range []string{"--secret-file", "--insecure", "0.0.0.0:6380"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not mention %s", err, want)
		}
	}
}

func TestReadSecret(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		got, err := readSecrets(writeFile(t, text))
		if err != nil || string(bytes.Join(got, []byte("|"))) != want {
			t.Errorf("secret of a file with %q = %q, %v, want %q", text, got, err, want)
		}
	}
	f("0123456789abcdef", "0123456789abcdef")
	f("  0123456789abcdef\r\n", "0123456789abcdef")
	f("0123456789abcdef\n\nfedcba9876543210\n0123456789abcdef", "0123456789abcdef|fedcba9876543210")

	if got, err := readSecrets(""); got != nil || err != nil {
		t.Errorf("without a file: %q, %v, want no secret", got, err)
	}
	if _, err := readSecrets(writeFile(t, "too short\n")); err == nil || !strings.Contains(err.Error(), "at least 16") {
		t.Errorf("short secret: error %v, want one that says how long", err)
	}
	if _, err := readSecrets("/does/not/exist"); err == nil {
		t.Error("a secret file that is missing is accepted")
	}
}
