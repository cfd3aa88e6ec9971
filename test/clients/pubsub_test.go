package clients

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/dunlin-cache/dunlin/test/harness"
)

// published is how many messages a subscriber gets from each publisher.
const published = 20

// messagesAt subscribes to a channel at some node, and returns the messages as they come.
type messagesAt func(ctx context.Context, t *testing.T, channel string) <-chan string

// TestPubSubOfClusterClients: cluster clients subscribe and publish where they like, with their defaults.
func TestPubSubOfClusterClients(t *testing.T) {
	t.Parallel()
	c := harness.StartCluster(t, 3, 1)
	harness.AwaitLevel(t, c.Proxy(0).Addr)
	c.AwaitCopies(harness.ReadyTimeout)
	one := harness.GoRedisCluster(t, c.Node(0).Addr, nil)
	other, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{c.Node(1).Addr}})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	publishers := map[string]func(channel, text string) (int64, error){
		"go-redis": func(channel, text string) (int64, error) { return one.Publish(ctx, channel, text).Result() },
		"rueidis": func(channel, text string) (int64, error) {
			return other.Do(ctx, other.B().Publish().Channel(channel).Message(text).Build()).AsInt64()
		},
	}
	for name, subscribe := range map[string]messagesAt{
		"go-redis": func(ctx context.Context, _ *testing.T, channel string) <-chan string {
			return ofGoRedis(one.Subscribe(ctx, channel))
		},
		"go-redis pattern": func(ctx context.Context, _ *testing.T, channel string) <-chan string {
			return ofGoRedis(one.PSubscribe(ctx, channel+"*"))
		},
		"rueidis": func(ctx context.Context, _ *testing.T, channel string) <-chan string {
			heard := make(chan string, 1000)
			go func() {
				subscribe := other.B().Subscribe().Channel(channel).Build()
				_ = other.Receive(ctx, subscribe, func(m rueidis.PubSubMessage) { heard <- m.Message }) // ends with ctx
			}()
			return heard
		},
		"redis-cli": func(ctx context.Context, t *testing.T, channel string) <-chan string {
			return ofRedisCLI(ctx, t, c.Node(2).Addr, channel)
		},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range 4 { // of several nodes
				channel := fmt.Sprintf("%s-%d", strings.ReplaceAll(name, " ", "-"), i)
				heard := subscribe(ctx, t, channel)
				harness.Eventually(t, 20*time.Second, "somebody listens", func() bool {
					n, err := one.Publish(ctx, channel, "nobody may listen yet").Result()
					return err == nil && n == 1
				})
				for by, publish := range publishers {
					for j := range published {
						if n, err := publish(channel, fmt.Sprint(by, j)); n != 1 || err != nil {
							t.Fatalf("%s: PUBLISH %s answers %d, %v", by, channel, n, err)
						}
					}
					for j := range published {
						if got := nextMessage(t, heard); got != fmt.Sprint(by, j) {
							t.Fatalf("%s brings %q as message %d of %s", channel, got, j, by)
						}
					}
				}
			}
		})
	}
}

// nextMessage returns the next message that counts.
func nextMessage(t *testing.T, heard <-chan string) string {
	t.Helper()
	timeout := time.After(20 * time.Second)
	for {
		select {
		case m := <-heard:
			if m != "nobody may listen yet" {
				return m
			}
		case <-timeout:
			t.Fatal("no message comes")
		}
	}
}

func ofGoRedis(s *redis.PubSub) <-chan string {
	heard := make(chan string, 1000)
	go func() {
		for m := range s.Channel() { // which ends with the client
			heard <- m.Payload
		}
	}()
	return heard
}

func ofRedisCLI(ctx context.Context, t *testing.T, addr, channel string) <-chan string {
	needTool(t, "redis-cli")
	host, port, _ := net.SplitHostPort(addr)
	cmd := exec.CommandContext(ctx, "redis-cli", "-c", "-h", host, "-p", port, "SUBSCRIBE", channel)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	heard := make(chan string, 1000)
	go func() {
		lines := bufio.NewScanner(out) // three for each message: message, channel, text
		for n := 0; lines.Scan(); n++ {
			if n%3 == 2 && n > 2 {
				heard <- lines.Text()
			}
		}
		_ = cmd.Wait() // it is killed
	}()
	return heard
}
