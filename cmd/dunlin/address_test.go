package main

import "testing"

func TestPortAfter(t *testing.T) {
	f := func(address string, n int, want string) {
		t.Helper()
		if got, err := portAfter(address, n); err != nil || got != want {
			t.Errorf("portAfter(%q, %d) = %q, %v, want %q", address, n, got, err, want)
		}
	}
	f("127.0.0.1:6379", 1, "127.0.0.1:6380")
	f("[::1]:6379", 3, "[::1]:6382")
	f("127.0.0.1:0", 2, "127.0.0.1:0")
	for _, bad := range []string{"127.0.0.1:65535", "127.0.0.1", "127.0.0.1:redis"} {
		if got, err := portAfter(bad, 1); err == nil {
			t.Errorf("portAfter(%q, 1) = %q, want an error", bad, got)
		}
	}
}

func TestAdvertiseIP(t *testing.T) {
	f := func(advertise, bound, want string) {
		t.Helper()
		if got, err := advertiseIP(t.Context(), advertise, bound); err != nil || got != want {
			t.Errorf("advertiseIP(%q, %q) = %q, %v, want %q", advertise, bound, got, err, want)
		}
	}
	f("", "127.0.0.1:6380", "127.0.0.1")
	f("", "[::1]:6380", "::1")
	f("10.1.2.3", "0.0.0.0:6380", "10.1.2.3")
	if _, err := advertiseIP(t.Context(), "no-such-host.invalid", "0.0.0.0:6380"); err == nil {
		t.Error("a name without an address is advertised")
	}
	// Which one depends on the machine; it must be one that others can use.
	if got, err := advertiseIP(t.Context(), "", "0.0.0.0:6380"); err == nil && (got == "0.0.0.0" || got == "127.0.0.1") {
		t.Errorf("advertiseIP of all interfaces = %q", got)
	}
}

func TestMemberID(t *testing.T) {
	usual := memberID("-proxy", "127.0.0.1:6379", "6379")
	other := memberID("-proxy", "127.0.0.1:6399", "6379")
	if other != usual+"-6399" {
		t.Errorf("ids %q and %q: want the second to be the first with its port", usual, other)
	}
}

func TestReachable(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		if got := reachable(in); got != want {
			t.Errorf("reachable(%q) = %q, want %q", in, got, want)
		}
	}
	f("0.0.0.0:9180", "127.0.0.1:9180")
	f("[::]:9180", "127.0.0.1:9180")
	f(":9180", "127.0.0.1:9180")
	f("10.0.0.1:9180", "10.0.0.1:9180")
	f("somewhere", "somewhere")
}
