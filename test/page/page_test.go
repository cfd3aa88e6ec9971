// Package page looks at the live page in a real browser. It is a module of its own because nothing
// else needs the browser's driver.
package page

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/dunlin-cache/dunlin/internal/freeport"
)

const (
	patience = 60 * time.Second
	keys     = 200
	// At this rate, the keys of fill take minutes to move to a node that joins; the keys of load
	// take a moment.
	moveRate  = "16kb"
	fillKeys  = 4000
	fillBytes = 4096
)

// TestPage checks that a proxy's page loads and draws without a script error, has the figures of
// nodes in other processes, follows a node's death and return and a join, and fits a phone. With
// SCREENSHOTS=dir it leaves pictures in dir.
func TestPage(t *testing.T) {
	c := startCluster(t)
	b := open(t, "http://"+c.admin)
	b.until("the cluster is drawn", drawn(3)+`&& document.querySelectorAll("#members tr").length === 4`)
	b.until("the nodes' memory is shown", `document.querySelectorAll("#members .bar").length === 3`)
	b.until("a key that is hot at a node is shown", `document.querySelector("#hot .key")?.textContent === "hot"`)
	b.until("there are plots", `document.querySelectorAll("#ops polyline").length > 0 && document.querySelectorAll("#latency polyline").length > 0`)
	b.until("nothing is wrong", `document.getElementById("state").className === ""`)
	b.until("a rate has its unit", `/^proxy-0 [\d,]+\/s$/.test(document.querySelector("#ops .legend").innerText)`)
	b.until("both latencies are shown", `/^proxy-0 p99 .*s, p50 .*s$/.test(document.querySelector("#latency .legend").innerText)`)
	b.want("plots are described in words", `[...document.querySelectorAll("svg[role=img]")].every(s => s.getAttribute("aria-label"))`)
	b.want("areas that scroll can be reached by keyboard",
		`[...document.querySelectorAll(".wide")].every(e => e.tabIndex === 0 && e.getAttribute("aria-label"))`)
	b.shots("healthy")

	c.kill(2)
	b.until("the death is shown", `document.getElementById("state").className === "bad" || document.querySelectorAll("#members tr").length === 3`)
	b.shots("broken")
	b.until("the others take over", drawn(2)+`&& document.querySelectorAll("#members tr").length === 3`)
	c.start(2)
	b.until("the return is shown", drawn(3)+`&& document.getElementById("state").className === ""`)

	c.fill()
	c.start(3)
	b.until("partitions move to the new node", `document.querySelector("#ring .move") !== null &&
		document.getElementById("moves").textContent.includes("to node-3") &&
		document.getElementById("state").textContent.includes("partitions moving")`)
	b.shots("moving")
	c.kill(3)
	b.until("the move ends without the new node", drawn(3)+`&& document.querySelector("#ring .move") === null && document.getElementById("moves").textContent === ""`)

	b.size(400, 800, false)
	b.want("nothing is wider than a phone", `document.documentElement.scrollWidth <= 400`)
	if len(b.errors) > 0 {
		t.Errorf("errors in the browser: %q", b.errors)
	}
}

// TestPageWithoutTable checks that the page of a process that is alone says so, and draws no empty
// ring.
func TestPageWithoutTable(t *testing.T) {
	c := &cluster{t: t, binary: build(t)}
	admin := freePort(t)
	c.run("proxy", "--id=proxy-0", "--listen="+freePort(t), "--gossip="+freePort(t), "--admin="+admin,
		"--join="+freePort(t))
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		if resp, err := http.Get("http://" + admin); err == nil {
			resp.Body.Close()
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the proxy does not answer")
		}
	}
	b := open(t, "http://"+admin)
	b.until("it says so", `document.getElementById("state").className === "bad" &&
		document.getElementById("state").textContent.includes("no table yet, 1 member alive") &&
		document.querySelector("#ring text").textContent === "no table" && document.getElementById("moves").textContent !== ""`)
	if len(b.errors) > 0 {
		t.Errorf("errors in the browser: %q", b.errors)
	}
}

// drawn returns a condition in JavaScript: so many nodes have partitions in the ring.
func drawn(nodes int) string {
	return fmt.Sprintf(`document.querySelectorAll("#ring path:not(.move)").length === %d `, nodes)
}

// TestPicture takes pictures of any page: PAGE=http://127.0.0.1:9180 SCREENSHOTS=dir.
func TestPicture(t *testing.T) {
	url := os.Getenv("PAGE")
	if url == "" {
		t.Skip("no PAGE to take a picture of")
	}
	b := open(t, url)
	b.until("the page is drawn", `document.getElementById("here").textContent !== ""`)
	b.shots("page")
}

// TestWithoutScripts checks that the page itself has the members and their figures.
func TestWithoutScripts(t *testing.T) {
	c := startCluster(t)
	resp, err := http.Get("http://" + c.admin)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"node-0", "node-1", "node-2", "proxy-0", "4 members alive", "serving"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page has no %q:\n%s", want, text)
		}
	}
	b := open(t, "http://"+c.admin)
	if err := chromedp.Run(b.ctx, emulation.SetScriptExecutionDisabled(true), chromedp.Reload()); err != nil {
		t.Fatal(err)
	}
	b.want("it says why it stands still, and shows nothing that is empty", `document.querySelector("noscript").innerText.includes("JavaScript") &&
		[...document.querySelectorAll("main h2")].filter(h => h.offsetHeight > 0).length === 1`)
	b.shots("noscript")
}

// browser is one tab.
type browser struct {
	t      *testing.T
	ctx    context.Context
	errors []string
}

func open(t *testing.T, url string) *browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no chromium: Debian has it in the package chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path),
		chromedp.NoSandbox, chromedp.DisableGPU)
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	b := &browser{t: t}
	var end context.CancelFunc
	b.ctx, end = chromedp.NewContext(ctx, chromedp.WithErrorf(t.Logf))
	t.Cleanup(end)
	b.watchErrors()
	b.size(1400, 900, false)
	if err := chromedp.Run(b.ctx, chromedp.Navigate(url)); err != nil {
		t.Fatalf("cannot open %s: %v", url, err)
	}
	return b
}

func (b *browser) size(width, height int64, dark bool) {
	b.t.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	err := chromedp.Run(b.ctx, chromedp.EmulateViewport(width, height),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}))
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *browser) holds(condition string) bool {
	b.t.Helper()
	var yes bool
	if err := chromedp.Run(b.ctx, chromedp.Evaluate(condition, &yes)); err != nil {
		b.t.Fatalf("cannot evaluate %s: %v", condition, err)
	}
	return yes
}

func (b *browser) want(what, condition string) {
	b.t.Helper()
	if !b.holds(condition) {
		b.t.Errorf("not so: %s; the page is\n%s", what, b.text())
	}
}

func (b *browser) until(what, condition string) {
	b.t.Helper()
	for deadline := time.Now().Add(patience); !b.holds(condition); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.t.Fatalf("waited in vain until %s; the page is\n%s", what, b.text())
		}
	}
}

func (b *browser) text() (text string) {
	if err := chromedp.Run(b.ctx, chromedp.Evaluate(`document.body.innerText`, &text)); err != nil {
		return err.Error()
	}
	return text
}

// shots takes pictures if SCREENSHOTS is set.
func (b *browser) shots(name string) {
	dir := os.Getenv("SCREENSHOTS")
	if dir == "" {
		return
	}
	for _, width := range []int64{1400, 400} {
		for scheme, dark := range map[string]bool{"light": false, "dark": true} {
			b.size(width, 900, dark)
			time.Sleep(2500 * time.Millisecond) // the next round draws for the new size
			var png []byte
			if err := chromedp.Run(b.ctx, chromedp.FullScreenshot(&png, 100)); err != nil {
				b.t.Fatal(err)
			}
			file := filepath.Join(dir, fmt.Sprintf("%s-%d-%s.png", name, width, scheme))
			if err := os.WriteFile(file, png, 0o644); err != nil {
				b.t.Fatal(err)
			}
		}
	}
	b.size(1400, 900, false)
}

// cluster is three nodes (a fourth may join) and a proxy, each a process of its own.
type cluster struct {
	t       *testing.T
	binary  string
	gossip  string // of the first node
	ports   []string
	running []*exec.Cmd
	clients string
	admin   string // address of the proxy's page
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, binary: build(t), running: make([]*exec.Cmd, 4)}
	for range 15 {
		c.ports = append(c.ports, freePort(t))
	}
	c.gossip = c.ports[1]
	for i := range 3 {
		c.start(i)
	}
	c.clients, c.admin = c.ports[12], c.ports[14]
	c.run("proxy", "--id=proxy-0", "--listen="+c.clients, "--gossip="+c.ports[13], "--admin="+c.admin, "--join="+c.gossip)
	deadline := time.Now().Add(patience)
	for !c.answers() {
		if time.Now().After(deadline) {
			t.Fatal("the cluster does not get ready")
		}
		time.Sleep(50 * time.Millisecond)
	}
	go c.load()
	return c
}

func build(t *testing.T) (binary string) {
	t.Helper()
	binary = filepath.Join(t.TempDir(), "dunlin")
	cmd := exec.Command("go", "build", "-trimpath", "-o", binary, "./cmd/dunlin")
	cmd.Dir = filepath.Join("..", "..")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as `make build` has it, which has compiled it
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cannot build dunlin: %v\n%s", err, out)
	}
	return binary
}

func (c *cluster) start(i int) {
	c.running[i] = c.run("node", fmt.Sprintf("--id=node-%d", i), "--listen="+c.ports[3*i], "--gossip="+c.ports[3*i+1],
		"--admin="+c.ports[3*i+2], "--memory=64mb", "--copies=1", "--move-rate="+moveRate, "--join="+c.ports[(3*i+4)%9])
}

func (c *cluster) run(args ...string) *exec.Cmd {
	c.t.Helper()
	cmd := exec.Command(c.binary, append(args, "--log-level=error")...)
	cmd.Stderr = c.t.Output()
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		_ = cmd.Process.Kill() // an error means that it has ended already
		_ = cmd.Wait()
	})
	return cmd
}

func (c *cluster) kill(i int) {
	_ = c.running[i].Process.Kill()
}

// answers reports whether all four members know each other and the proxy is ready.
func (c *cluster) answers() bool {
	resp, err := http.Get("http://" + c.admin + "/")
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || !strings.Contains(string(text), "4 members alive") {
		return false
	}
	ready, err := http.Get("http://" + c.admin + "/readyz")
	if err != nil {
		return false
	}
	ready.Body.Close()
	return ready.StatusCode == http.StatusOK
}

// fill writes keys that take long to move.
func (c *cluster) fill() {
	c.t.Helper()
	conn, err := net.Dial("tcp", c.clients)
	if err != nil {
		c.t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		c.t.Fatal(err)
	}
	in, value := bufio.NewReader(conn), strings.Repeat("x", fillBytes)
	for i := range fillKeys {
		key := fmt.Sprintf("fill:%d", i)
		fmt.Fprintf(conn, "*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", len(key), key, fillBytes, value)
		if line, err := in.ReadString('\n'); line != "+OK\r\n" {
			c.t.Fatalf("SET %s is answered by %q, %v", key, line, err)
		}
	}
}

// load sends commands until the test ends.
func (c *cluster) load() {
	conn, err := net.Dial("tcp", c.clients)
	if err != nil {
		return
	}
	defer conn.Close()
	in := bufio.NewReader(conn)
	for i := 0; c.t.Context().Err() == nil; i++ {
		if _, err := fmt.Fprintf(conn, "SET key:%d value\r\nGET key:%d\r\nGET hot\r\n", i%keys, i%(2*keys)); err != nil {
			return
		}
		for range 3 {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			if strings.HasPrefix(line, "$") && !strings.HasPrefix(line, "$-1") {
				if _, err := in.ReadString('\n'); err != nil {
					return
				}
			}
		}
		if i%50 == 0 {
			time.Sleep(5 * time.Millisecond) // leaves the processor to others
		}
	}
}

// freePort returns the address of a port that no other test process gets.
func freePort(t *testing.T) string {
	t.Helper()
	port, err := freeport.Choose()
	if err != nil {
		t.Fatal(err)
	}
	return freeport.Loopback(port)
}
