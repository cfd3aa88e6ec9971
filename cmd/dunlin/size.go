package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// size is a number of bytes as a flag: "512mb", "2gb", "4GiB", "1.5g", "1048576". Every unit is a
// power of 1024, with or without the b, in any case. Redis's configuration reads "1k" as 1000;
// Dunlin has one meaning for all spellings, which is easier to remember and never gives less memory
// than a Redis user expects.
type size int64

var sizeUnits = map[string]float64{
	"": 1, "b": 1,
	"k": 1 << 10, "kb": 1 << 10, "kib": 1 << 10,
	"m": 1 << 20, "mb": 1 << 20, "mib": 1 << 20,
	"g": 1 << 30, "gb": 1 << 30, "gib": 1 << 30,
	"t": 1 << 40, "tb": 1 << 40, "tib": 1 << 40,
}

func parseSize(text string) (size, error) {
	s := strings.ToLower(strings.TrimSpace(text))
	digits := len(s) - len(strings.TrimLeft(s, "0123456789."))
	unit, known := sizeUnits[strings.TrimSpace(s[digits:])]
	number, err := strconv.ParseFloat(s[:digits], 64)
	if err != nil || !known {
		return 0, fmt.Errorf("%q is not a size: write a number with b, kb, mb, gb or tb, as in 512mb", text)
	}
	if number*unit >= math.MaxInt64 {
		return 0, fmt.Errorf("size %q is too large", text)
	}
	return size(number * unit), nil
}

// Set, String and Type make a *size a pflag.Value.
func (s *size) Set(text string) error {
	v, err := parseSize(text)
	if err == nil {
		*s = v
	}
	return err
}

func (s *size) Type() string { return "size" }

// String returns the shortest exact form, which parseSize reads back.
func (s *size) String() string {
	v := int64(*s)
	for _, u := range []struct {
		bytes int64
		name  string
	}{{1 << 40, "tb"}, {1 << 30, "gb"}, {1 << 20, "mb"}, {1 << 10, "kb"}} {
		if v >= u.bytes && v%u.bytes == 0 {
			return strconv.FormatInt(v/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(v, 10)
}
