package page

import (
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// watchErrors records the errors that the page's script throws.
func (b *browser) watchErrors() {
	chromedp.ListenTarget(b.ctx, func(event any) {
		if thrown, ok := event.(*runtime.EventExceptionThrown); ok {
			b.errors = append(b.errors, thrown.ExceptionDetails.Error())
		}
	})
}
