package proxy

import (
	"net"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/cluster"
	"github.com/dunlin-cache/dunlin/internal/conversation"
)

func withSentinel(cfg *Config) {
	cfg.Sentinel, cfg.Masters = "127.0.0.1:0", []string{"mymaster", "cache"}
}

// TestSentinel: whatever name is asked for, it is the proxy's.
func TestSentinel(t *testing.T) {
	c := newCluster(t, 1, withSentinel)
	s := &conversation.Socket{Addr: c.proxy.SentinelAddr()}
	s.Connect(t)
	host, port, _ := net.SplitHostPort(c.proxy.Addr())
	say := func(request, want string) {
		t.Helper()
		if got := conversation.Text([]byte(s.Say(t, request))); got != want {
			t.Errorf("%s answers\n%s\nwant\n%s", request, got, want)
		}
	}
	addr := "1) \"" + host + "\"\n2) \"" + port + "\""
	say("SENTINEL GET-MASTER-ADDR-BY-NAME mymaster", addr)
	say("SENTINEL get-master-addr-by-name whatever", addr)
	say("SENTINEL GET-PRIMARY-ADDR-BY-NAME mymaster", addr)
	say("SENTINEL REPLICAS mymaster", "(empty array)")
	say("SENTINEL SLAVES mymaster", "(empty array)")
	say("SENTINEL SENTINELS mymaster", "(empty array)")
	say("SENTINEL CKQUORUM mymaster", "OK 1 usable Sentinels. Quorum and failover authorization can be reached")
	say("SENTINEL FAILOVER mymaster", "(error) NOGOODSLAVE No suitable replica to promote")
	say("SENTINEL MYID", `"`+cluster.NodeID("p1")+`"`)
	say("SENTINEL MONITOR a b 1 1", "(error) ERR unknown subcommand 'MONITOR'. Try SENTINEL HELP.")
	say("SENTINEL MASTER", "(error) ERR wrong number of arguments for 'sentinel|master' command")
	say("PING", "PONG")
	say("ROLE", "1) \"master\"\n2) (integer) 0\n3) (empty array)")
	one := conversation.Text([]byte(s.Say(t, "SENTINEL MASTER cache")))
	for _, want := range []string{`"name"`, `"cache"`, `"` + host + `"`, `"` + port + `"`, `"flags"`, `"num-other-sentinels"`} {
		if !strings.Contains(one, want) {
			t.Errorf("SENTINEL MASTER lacks %s: %s", want, one)
		}
	}
	all := conversation.Text([]byte(s.Say(t, "SENTINEL MASTERS")))
	if strings.Count(all, `"runid"`) != 2 || !strings.Contains(all, `"mymaster"`) {
		t.Errorf("SENTINEL MASTERS answers %s", all)
	}
	s.Say(t, "HELLO 3")
	if got := s.Say(t, "SENTINEL MASTER cache"); !strings.HasPrefix(got, "%20\r\n$4\r\nname\r\n$5\r\ncache\r\n") {
		t.Errorf("in RESP3, SENTINEL MASTER begins with %.40q", got)
	}
}

// TestNoSentinelElsewhere: at its ordinary address a proxy is no sentinel, because clients would take it for one.
func TestNoSentinelElsewhere(t *testing.T) {
	c := newCluster(t, 1, withSentinel)
	cl := c.dial()
	cl.send("SENTINEL MASTERS", "SENTINEL GET-MASTER-ADDR-BY-NAME mymaster")
	cl.want("-ERR unknown command 'SENTINEL', with args beginning with: 'MASTERS' ",
		"-ERR unknown command 'SENTINEL', with args beginning with: 'GET-MASTER-ADDR-BY-NAME' 'mymaster' ")
}

// TestSentinelOfAdvertised: clients are sent to the address that the proxy advertises.
func TestSentinelOfAdvertised(t *testing.T) {
	c := newCluster(t, 1, withSentinel, func(cfg *Config) { cfg.Advertise = "cache.example:7000" })
	s := &conversation.Socket{Addr: c.proxy.SentinelAddr()}
	s.Connect(t)
	if got := conversation.Text([]byte(s.Say(t, "SENTINEL GET-MASTER-ADDR-BY-NAME m"))); got != "1) \"cache.example\"\n2) \"7000\"" {
		t.Errorf("the address is %s", got)
	}
}
