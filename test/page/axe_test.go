package page

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// TestAccessible checks any page with axe, in light and dark, wide and on a phone:
// PAGE=http://127.0.0.1:9180 AXE=node_modules/axe-core/axe.min.js.
func TestAccessible(t *testing.T) {
	url, axe := os.Getenv("PAGE"), os.Getenv("AXE")
	if url == "" || axe == "" {
		t.Skip("no PAGE to look at, or no AXE to look with (npm install axe-core)")
	}
	script, err := os.ReadFile(axe)
	if err != nil {
		t.Fatal(err)
	}
	b := open(t, url)
	b.until("the page is drawn", `document.getElementById("here").textContent !== ""`)
	for _, width := range []int64{1400, 400} {
		for _, dark := range []bool{false, true} {
			b.size(width, 900, dark)
			b.wantNoViolations(string(script))
		}
	}
}

func (b *browser) wantNoViolations(script string) {
	b.t.Helper()
	var found []struct {
		ID, Impact, Help string
		Nodes            []struct{ HTML, FailureSummary string }
	}
	var text string
	run := `axe.run().then(r => JSON.stringify(r.violations))`
	await := func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }
	if err := chromedp.Run(b.ctx, chromedp.Evaluate(script, nil), chromedp.Evaluate(run, &text, await)); err != nil {
		b.t.Fatalf("cannot run axe: %v", err)
	}
	if err := json.Unmarshal([]byte(text), &found); err != nil {
		b.t.Fatal(err)
	}
	for _, v := range found {
		b.t.Errorf("%s, %s: %s", v.ID, v.Impact, v.Help)
		for _, n := range v.Nodes {
			b.t.Errorf("  %s\n  %s", n.HTML, n.FailureSummary)
		}
	}
}
