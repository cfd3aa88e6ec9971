package main

import (
	"bytes"
	"log/slog"
	"math"
	"strings"
	"testing"
)

// TestClientsFitDescriptors checks that clients never take all descriptors.
func TestClientsFitDescriptors(t *testing.T) {
	f := func(descriptors uint64, tls bool, want uint64) {
		t.Helper()
		if got := clientsFor(descriptors, tls); got != want {
			t.Errorf("%d descriptors, TLS %v: %d clients, want %d", descriptors, tls, got, want)
		}
	}
	f(65536, false, 64512)
	f(65536, true, 21504)
	f(1024, false, 768)
	f(1024, true, 256)
	f(1, true, 1)
	f(math.MaxUint64, false, math.MaxUint64-spareDescriptors)
}

// TestMaxClientsIsLowered checks that the operator hears of it, and only then.
func TestMaxClientsIsLowered(t *testing.T) {
	var text bytes.Buffer
	log := slog.New(slog.NewTextHandler(&text, nil))
	o := &options{maxClients: 1}
	if o.fitDescriptors(log); o.maxClients != 1 || text.Len() > 0 {
		t.Errorf("one client becomes %d: %s", o.maxClients, text.String())
	}
	o.maxClients = math.MaxInt
	if o.fitDescriptors(log); o.maxClients == math.MaxInt || !strings.Contains(text.String(), "lowered_to=") {
		t.Errorf("too many clients stay %d: %s", o.maxClients, text.String())
	}
}
