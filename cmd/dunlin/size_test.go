package main

import "testing"

func TestParseSize(t *testing.T) {
	f := func(in string, want size) {
		t.Helper()
		got, err := parseSize(in)
		if err != nil || got != want {
			t.Errorf("parseSize(%q) = %d, %v, want %d", in, got, err, want)
		}
	}
	f("0", 0)
	f("1048576", 1<<20)
	f("512mb", 512<<20)
	f("512MB", 512<<20)
	f("2gb", 2<<30)
	f("4GiB", 4<<30)
	f("4 GiB", 4<<30)
	f("1.5g", 3<<29)
	f("10k", 10<<10)
	f("100b", 100)
	f("1tb", 1<<40)
}

func TestParseSizeRefuses(t *testing.T) {
	for _, in := range []string{"", "mb", "-1mb", "1..5g", "12x", "1e3", "0x10", "inf", "nan", "9999999tb"} {
		if got, err := parseSize(in); err == nil {
			t.Errorf("parseSize(%q) = %d, want an error", in, got)
		}
	}
}

func TestSizeStringReadsBack(t *testing.T) {
	for _, v := range []size{0, 1, 1000, 1 << 10, 1 << 20, 512 << 20, 3 << 29, 1 << 30, 5 << 40} {
		got, err := parseSize(v.String())
		if err != nil || got != v {
			t.Errorf("parseSize(%q) = %d, %v, want %d", v.String(), got, err, int64(v))
		}
	}
}
