package cluster

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dunlin-cache/dunlin/internal/certtest"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// TestTLS runs a cluster with TLS everywhere: from clients to the proxy, between members, and from
// cluster clients to nodes.
func TestTLS(t *testing.T) {
	t.Parallel()
	clients, members := certtest.New(t), certtest.New(t)
	cert, key := clients.Issue(t, "proxy")
	memberCert, memberKey := members.Issue(t, "member")
	c := harness.StartClusterWith(t, harness.StartOptions{
		Nodes: 2, Proxies: 1,
		Flags: []string{"--cluster-tls-cert", memberCert, "--cluster-tls-key", memberKey, "--cluster-tls-ca", members.CA},
		Env:   []string{"DUNLIN_TLS_CERT=" + cert, "DUNLIN_TLS_KEY=" + key},
	})
	proxy, node := c.Proxy(0).Addr, c.Node(1).Addr
	toProxy := func(version uint16) *tls.Config {
		return &tls.Config{RootCAs: clients.Pool, MinVersion: version, MaxVersion: version}
	}
	ours, err := tls.LoadX509KeyPair(memberCert, memberKey)
	if err != nil {
		t.Fatal(err)
	}
	toNode := &tls.Config{RootCAs: members.Pool, Certificates: []tls.Certificate{ours}}

	for name, do := range map[string]harness.Doer{
		"TLS-1.2":          harness.GoRedisDoer(harness.GoRedis(t, &redis.Options{Addr: proxy, TLSConfig: toProxy(tls.VersionTLS12)})),
		"TLS-1.3":          harness.GoRedisDoer(harness.GoRedis(t, &redis.Options{Addr: proxy, TLSConfig: toProxy(tls.VersionTLS13)})),
		"cluster-client":   harness.GoRedisDoer(harness.GoRedisCluster(t, node, toNode)),
		"proxy-as-cluster": harness.GoRedisDoer(harness.GoRedisCluster(t, proxy, toProxy(tls.VersionTLS13))),
	} {
		t.Run(name, func(t *testing.T) { harness.Converse(t, name, do) })
	}
	t.Run("large value", func(t *testing.T) {
		r := harness.GoRedis(t, &redis.Options{Addr: proxy, TLSConfig: toProxy(tls.VersionTLS13)})
		want := bytes.Repeat([]byte("0123456789abcdef"), 8<<20/16)
		if err := r.Set(t.Context(), "large", want, 0).Err(); err != nil {
			t.Fatal(err)
		}
		if got, err := r.Get(t.Context(), "large").Bytes(); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes came back of %d, error %v", len(got), len(want), err)
		}
	})
	t.Run("addresses", func(t *testing.T) {
		r := harness.GoRedis(t, &redis.Options{Addr: proxy, TLSConfig: toProxy(tls.VersionTLS13)})
		if got, err := r.ClientInfo(t.Context()).Result(); err != nil || got.LAddr != proxy || got.Addr == "" {
			t.Errorf("CLIENT INFO tells %+v, error %v; want the address %s", got, err, proxy)
		}
	})
	t.Run("redis-cli", func(t *testing.T) {
		host, port, _ := net.SplitHostPort(proxy)
		out, err := exec.Command("redis-cli", "-h", host, "-p", port, "--tls", "--cacert", clients.CA, "PING").CombinedOutput()
		if strings.Contains(string(out), "Unrecognized option") || err != nil && len(out) == 0 {
			t.Skipf("redis-cli is missing or without TLS: %v", err)
		}
		if string(out) != "PONG\n" {
			t.Errorf("PING answers %q, error %v", out, err)
		}
	})
	for _, addr := range []string{proxy, node} {
		if got := sayPlainly(t, addr); strings.Contains(got, "PONG") {
			t.Errorf("%s answers without TLS: %q", addr, got)
		}
	}
	// The proxy counts the handshake a moment after it has closed the connection.
	harness.Eventually(t, harness.ReadyTimeout, "the proxy counts the handshake that failed", func() bool {
		text, err := harness.Get(c.Proxy(0).Admin, "/metrics")
		return err == nil && strings.Contains(string(text), "\ndunlin_tls_handshakes_total{result=\"failed\",with=\"clients\"} 1\n")
	})
	for _, with := range []string{"clients", "members"} {
		if _, found := harness.Scrape(t, c.Proxy(0).Admin).Sum(`dunlin_tls_certificate_expiry_timestamp_seconds{with="` + with); !found {
			t.Errorf("the proxy's metrics do not tell when its certificate for %s ends", with)
		}
	}
	if conn, err := tls.Dial("tcp", node, &tls.Config{RootCAs: members.Pool}); err == nil {
		defer conn.Close()
		if _, err := conn.Read(make([]byte, 1)); err == nil || !strings.Contains(err.Error(), "certificate required") {
			t.Errorf("a node talks to who shows no certificate: %v", err)
		}
	}
	t.Run("silent connections", func(t *testing.T) {
		handshakeBesideSilence(t, proxy, toProxy(tls.VersionTLS13))
		handshakeBesideSilence(t, node, toNode)
	})
}

// sayPlainly sends PING without TLS and returns the answer up to the end of the connection.
func sayPlainly(t testing.TB, addr string) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("PING\r\n")); err != nil {
		t.Fatal(err)
	}
	if err := c.SetReadDeadline(time.Now().Add(harness.ReadyTimeout)); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(c)
	if ne, ok := err.(net.Error); ok && ne.Timeout() {
		t.Errorf("%s leaves a plain connection open", addr)
	}
	return string(got)
}

// TestRenewedCertificate replaces a certificate on disk. New connections must get the new one, and
// existing connections must continue.
func TestRenewedCertificate(t *testing.T) {
	t.Parallel()
	ca := certtest.New(t)
	cert, key := ca.Issue(t, "proxy")
	c := harness.StartClusterWith(t, harness.StartOptions{Nodes: 1, Proxies: 1, Env: []string{"DUNLIN_TLS_CERT=" + cert, "DUNLIN_TLS_KEY=" + key}})
	dial := func() *tls.Conn {
		conn, err := tls.Dial("tcp", c.Proxy(0).Addr, &tls.Config{RootCAs: ca.Pool})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	serial := func(conn *tls.Conn) string { return conn.ConnectionState().PeerCertificates[0].SerialNumber.String() }
	old := dial()
	before := serial(old)
	w := &harness.Wire{T: t, Conn: old}
	w.Want("SET k v", "OK")
	ca.Issue(t, "proxy")
	harness.Eventually(t, 30*time.Second, "the new certificate is shown", func() bool { return serial(dial()) != before })
	w.Want("GET k", `"v"`)
}

// TestMemberWithoutCertificate checks that a process with the cluster's name and secret, but
// without a certificate of its authority, cannot become a member.
func TestMemberWithoutCertificate(t *testing.T) {
	t.Parallel()
	members, strangers := certtest.New(t), certtest.New(t)
	cert, key := members.Issue(t, "member")
	flags := []string{"--cluster-tls-cert", cert, "--cluster-tls-key", key, "--cluster-tls-ca", members.CA}
	c := harness.StartClusterWith(t, harness.StartOptions{Nodes: 1, Proxies: 1, Flags: flags})
	w := harness.DialWire(t, c.Proxy(0).Addr)
	w.Want("SET k v", "OK")

	cert, key = strangers.Issue(t, "stranger")
	for name, flags := range map[string][]string{
		"plain":    nil,
		"stranger": {"--cluster-tls-cert", cert, "--cluster-tls-key", key, "--cluster-tls-ca", members.CA},
	} {
		m := harness.NewMember(t, "proxy", name)
		m.Flags = append(m.Flags, "--join", c.Node(0).Gossip)
		m.Flags = append(m.Flags, flags...)
		m.Launch()
		before := failedHandshakes(t, c.Node(0))
		harness.Eventually(t, harness.ReadyTimeout, "it is refused", func() bool { return failedHandshakes(t, c.Node(0)) > before })
		if got := string(harness.DialWire(t, m.Addr).Do("GET k")); !strings.HasPrefix(got, "-") {
			t.Errorf("%s: GET answers %q", name, got)
		}
		m.Kill()
	}
	w.Want("GET k", `"v"`)
}

func failedHandshakes(t *testing.T, m *harness.Member) float64 {
	t.Helper()
	n, err := m.Figure(`dunlin_tls_handshakes_total{result="failed"`)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// handshakeBesideSilence checks that connections that never begin their handshakes delay those of
// others by moments only.
func handshakeBesideSilence(t *testing.T, addr string, config *tls.Config) {
	for range 1100 {
		harness.DialWire(t, addr)
	}
	for _, x := range []struct {
		source string
		within time.Duration
	}{{"127.0.0.2", 2 * time.Second}, {"127.0.0.1", 4 * time.Second}} {
		config := config.Clone()
		config.ServerName = "127.0.0.1"
		begin := time.Now()
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(x.source)}, Timeout: harness.ReplyTimeout}
		conn, err := tls.DialWithDialer(&dialer, "tcp", addr, config)
		if err != nil {
			t.Fatal(err)
		}
		(&harness.Wire{T: t, Conn: conn}).Want("PING", "PONG")
		if took := time.Since(begin); took > x.within {
			t.Errorf("%s waited %v among silent connections", x.source, took)
		} else {
			t.Logf("%s waited %v", x.source, took)
		}
		conn.Close()
	}
}

// TestTLSClientsThatLeaveWhilePaused: a TLS client that leaves during a pause is noticed before its end, also with more
// input than the loop and the bridge hold, and its command is not executed.
func TestTLSClientsThatLeaveWhilePaused(t *testing.T) {
	t.Parallel()
	clients := certtest.New(t)
	cert, key := clients.Issue(t, "proxy")
	c := harness.StartClusterWith(t, harness.StartOptions{
		Nodes: 1, Proxies: 1, Env: []string{"DUNLIN_TLS_CERT=" + cert, "DUNLIN_TLS_KEY=" + key},
	})
	dial := func() *harness.Wire {
		conn, err := tls.Dial("tcp", c.Proxy(0).Addr, &tls.Config{RootCAs: clients.Pool})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return &harness.Wire{T: t, Conn: conn}
	}
	admin := dial()
	admin.Want("SET a old", "OK")
	admin.Want("CLIENT PAUSE 1000000 WRITE", "OK")
	const step = 8 << 10
	pings := []byte(strings.Repeat("PING\r\n", step/6))
	leave := func(what string, enough func(sent int, w *harness.Wire) bool) {
		w, sent := dial(), 0
		w.Send([]byte("SET a new\r\n"))
		wantBlocked(t, admin, 1)
		for ; !enough(sent, w); sent += len(pings) {
			w.Send(pings)
		}
		w.Conn.(*tls.Conn).NetConn().Close()
		begun := time.Now()
		harness.Eventually(t, time.Minute, "it is noticed that the client has left", func() bool {
			return !blockedFlag.Match(admin.Do("CLIENT LIST"))
		})
		t.Logf("%s: sent %d bytes, and was noticed after %v", what, sent, time.Since(begun))
	}
	leave("a client with little input", func(sent int, _ *harness.Wire) bool { return sent > 0 })
	leave("a client with what the loop holds", func(sent int, _ *harness.Wire) bool { return sent >= 200<<10 })
	if runtime.GOOS == "linux" {
		leave("a client with more", func(sent int, w *harness.Wire) bool {
			if sent > 4<<20 {
				t.Fatal("the proxy reads whatever a paused client sends")
			}
			return sent >= 200<<10 && staysUnread(t, w)
		})
	}
	admin.Want("CLIENT UNPAUSE", "OK")
	admin.Want("GET a", `"old"`)
}

// staysUnread reports whether the peer has left something unread of what w has sent.
func staysUnread(t *testing.T, w *harness.Wire) bool {
	conn := w.Conn.(*tls.Conn)
	port := func(a net.Addr) string { return fmt.Sprintf(":%04X", a.(*net.TCPAddr).Port) }
	for deadline := time.Now().Add(300 * time.Millisecond); time.Now().Before(deadline); runtime.Gosched() {
		sockets, err := os.ReadFile("/proc/net/tcp")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(sockets)) {
			// number, local address, remote address, state, length of the queues to send:to receive
			f := strings.Fields(line)
			if strings.HasSuffix(f[1], port(conn.RemoteAddr())) && strings.HasSuffix(f[2], port(conn.LocalAddr())) &&
				strings.HasSuffix(f[4], ":00000000") {
				return false
			}
		}
	}
	return true
}
