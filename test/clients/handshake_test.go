package clients

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/conversation"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// TestHandshakes replays the scripts of package session, which are about connections (HELLO, AUTH,
// CLIENT, COMMAND, CONFIG, CLUSTER), with a real proxy and a real node. Package session replays
// them with a real redis-server.
func TestHandshakes(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("a secret of the cluster"), 0o600); err != nil {
		t.Fatal(err)
	}
	open := harness.StartCluster(t, 2, 1)
	locked := harness.StartCluster(t, 2, 1, "--requirepass", "secret", "--secret-file", secret)
	for _, file := range conversation.Files(t, "../../internal/session/testdata/*.txt") {
		s := conversation.ReadScript(t, file)
		c := open
		if s.Password != "" {
			c = locked
		}
		for _, m := range []*harness.Member{c.Node(0), c.Proxy(0)} {
			t.Run(m.Role+" "+filepath.Base(file), func(t *testing.T) {
				s.Hold(t, &conversation.Socket{Addr: m.Addr}, func(d conversation.Dialog) bool {
					return notHeld[m.Role+": "+d.Title] != ""
				})
			})
		}
	}
}

// notHeld lists dialogs, by role and title, in which real processes answer differently.
var notHeld = map[string]string{
	"proxy: Keys in a slot":               "a proxy has no keys; it refers to the nodes",
	"proxy: All or nothing":               "the nodes' parameters are set apart from a proxy's",
	"proxy: What Dunlin cannot be set to": "the same",
	"node: What Dunlin cannot be set to":  "its hook that fails is that of a test",
}
