package session

import (
	"context"
	"net"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/gomodule/redigo/redis"
	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/dunlin-cache/dunlin/internal/cluster"
	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/figures"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// listen serves the Server on a socket, for client libraries to connect to.
func listen(t *testing.T, s *Server) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { serve(s, conn) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		serving.Wait() // the clients are closed by now
	})
	return l.Addr().String()
}

// serve answers one connection until it ends, like the loop of a node.
func serve(s *Server, conn net.Conn) {
	defer conn.Close()
	st := s.NewState(conn.RemoteAddr().String(), conn.LocalAddr().String(), s.o.Clock())
	var parser resp.Parser
	var in []byte
	buf := make([]byte, 4096)
	for {
		n, err := conn.Read(buf)
		if err != nil {
			return
		}
		in = append(in, buf[:n]...)
		var out []byte
		for parser.Parse(in) == resp.Done {
			var action Action
			out, action = serveRequest(s, st, parser.Args(), out)
			in = in[parser.Len():]
			if action == ActionClose || action == ActionCloseAfterReply {
				_, _ = conn.Write(out)
				return
			}
		}
		if _, err := conn.Write(out); err != nil {
			return
		}
	}
}

// process answers INFO.
var process = figures.NewProcess(figures.Identity{
	MaxClients: func() int { return 0 }, Blocked: func() int64 { return 0 }, Policy: func(_, _, _ int64) string { return "" },
})

func serveRequest(s *Server, st *State, args [][]byte, out []byte) ([]byte, Action) {
	c := command.Lookup(args[0])
	out, action, refused := s.Refuse(st, c, args, out)
	switch {
	case refused:
		return out, action
	case c.ID == command.Info:
		return process.AppendInfo(out, st.Version, args[1:], figures.Info{}), ActionNone
	}
	out, action, _ = s.Do(st, c, args, out)
	return out, action
}

// The libraries' own handshakes, with a password, a name and a database.

func TestGoRedisConnects(t *testing.T) {
	addr := listen(t, testServer("secret"))
	for _, protocol := range []int{2, 3} {
		client := goredis.NewClient(&goredis.Options{
			Addr: addr, Password: "secret", ClientName: "app", Protocol: protocol, MaxRetries: -1,
		})
		ctx := context.Background()
		if name, err := client.ClientGetName(ctx).Result(); err != nil || name != "app" {
			t.Errorf("RESP%d: ClientGetName() = %q, %v, want app", protocol, name, err)
		}
		info, err := client.ClientInfo(ctx).Result()
		if err != nil || !strings.HasPrefix(info.LibName, "go-redis") || info.LastCmd != "client|info" {
			t.Errorf("RESP%d: ClientInfo() = %+v, %v", protocol, info, err)
		}
		if commands, err := client.Command(ctx).Result(); err != nil || commands["get"].FirstKeyPos != 1 {
			t.Errorf("RESP%d: Command(): get is %+v, %v", protocol, commands["get"], err)
		}
		if v, err := client.ConfigGet(ctx, "databases").Result(); err != nil || v["databases"] != "16" {
			t.Errorf("RESP%d: ConfigGet() = %v, %v", protocol, v, err)
		}
		if err := client.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
}

func TestGoRedisIsToldOfAWrongPassword(t *testing.T) {
	client := goredis.NewClient(&goredis.Options{Addr: listen(t, testServer("secret")),
		Password: "wrong", MaxRetries: -1})
	defer client.Close()
	if err := client.Ping(context.Background()).Err(); err == nil || !strings.HasPrefix(err.Error(), "WRONGPASS") {
		t.Errorf("Ping with a wrong password: %v, want WRONGPASS", err)
	}
}

// TestGoRedisReadsTheCluster checks how a client of Redis Cluster understands a table.
func TestGoRedisReadsTheCluster(t *testing.T) {
	table := &ring.Table{Epoch: 1, Nodes: []ring.Member{{ID: "node-0", Addr: "10.0.0.1:6380"},
		{ID: "node-1", Addr: "10.0.0.2:6380"}}}
	for p := range table.Owner {
		table.Owner[p] = uint16(p * 2 / ring.Partitions)
	}
	client := goredis.NewClient(&goredis.Options{Addr: listen(t, NewServer(Options{
		Cluster: cluster.New(func() cluster.View { return cluster.View{Table: table, Self: "node-0"} }),
	}))})
	defer client.Close()
	slots, err := client.ClusterSlots(context.Background()).Result() //nolint:staticcheck // deprecated, but older clients send it
	if err != nil || len(slots) != 2 || slots[1].Start != 8192 || slots[1].Nodes[0].Addr != "10.0.0.2:6380" {
		t.Errorf("ClusterSlots() = %+v, %v", slots, err)
	}
	shards, err := client.ClusterShards(context.Background()).Result()
	if err != nil || len(shards) != 2 || shards[0].Nodes[0].Endpoint != "10.0.0.1" || shards[0].Nodes[0].Port != 6380 {
		t.Errorf("ClusterShards() = %+v, %v", shards, err)
	}
}

func TestRueidisConnects(t *testing.T) {
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{listen(t, testServer("secret"))}, Password: "secret", ClientName: "app",
		DisableCache: true, ForceSingleClient: true, ClientNoTouch: true, ClientNoEvict: true,
	})
	if err != nil {
		t.Fatalf("cannot connect: %v", err)
	}
	defer client.Close()
	name, err := client.Do(context.Background(), client.B().ClientGetname().Build()).ToString()
	if err != nil || name != "app" {
		t.Errorf("CLIENT GETNAME = %q, %v, want app", name, err)
	}
}

func TestRedigoConnects(t *testing.T) {
	conn, err := redis.Dial("tcp", listen(t, testServer("secret")), redis.DialPassword("secret"),
		redis.DialClientName("app"), redis.DialDatabase(0))
	if err != nil {
		t.Fatalf("cannot connect: %v", err)
	}
	defer conn.Close()
	if name, err := redis.String(conn.Do("CLIENT", "GETNAME")); err != nil || name != "app" {
		t.Errorf("CLIENT GETNAME = %q, %v, want app", name, err)
	}
}

func TestRedisCLI(t *testing.T) {
	path, err := exec.LookPath("redis-cli")
	if err != nil {
		t.Skip("there is no redis-cli here to connect with")
	}
	host, port, _ := net.SplitHostPort(listen(t, testServer("secret")))
	f := func(want string, args ...string) {
		t.Helper()
		args = append([]string{"-h", host, "-p", port, "--pass", "secret", "--no-auth-warning"}, args...)
		out, err := exec.Command(path, args...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("redis-cli %q: %v, %q, want %q in it", args, err, out, want)
		}
	}
	f("PONG", "ping")
	f("PONG", "-3", "ping")
	f("redis_version:"+command.RedisVersion, "info", "server")
	f("redis_version:"+command.RedisVersion, "-3", "info", "server")
	f("noeviction", "config", "get", "maxmemory-policy")
	f("group", "command", "docs", "get")
	f("laddr=127.0.0.1:"+port, "client", "info")
}
