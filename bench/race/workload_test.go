package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestArguments(t *testing.T) {
	got, err := workloads[len(workloads)-1].arguments("127.0.0.1:7000", 500, 1000)
	if err != nil {
		t.Fatal(err)
	}
	const want = "-h 127.0.0.1 -p 7000 --csv -n 500 -c 50 -P 4 -d 64 -r 1000 mget "
	line := strings.Join(got, " ")
	if !strings.HasPrefix(line, want) {
		t.Errorf("arguments are %q: want %q before the keys", line, want)
	}
	if keys := strings.Count(line, keyWord); keys != 10 {
		t.Errorf("mget10 sends %d keys: want 10", keys)
	}
	if _, err := workloads[0].arguments("no port", 1, 1); err == nil {
		t.Error("an address without port was taken")
	}
}

func TestCount(t *testing.T) {
	f := func(requests int, scale float64, want int) {
		t.Helper()
		w := workload{clients: 50, pipeline: 16, requests: requests}
		if got := w.count(scale); got != want {
			t.Errorf("%d requests at scale %g are %d: want %d", requests, scale, got, want)
		}
	}
	f(100_000, 1, 100_000)
	f(100_000, 2.5, 250_000)
	f(100_000, 0.5, 50_000)
	f(100_000, 0.001, 8_000) // ten full pipelines
}

const titles = `"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"` + "\n"

func TestParseSpeed(t *testing.T) {
	f := func(out string, want speed) {
		t.Helper()
		if got, err := parseSpeed([]byte(out)); err != nil || got != want {
			t.Errorf("parsed %+v, %v from %q: want %+v", got, err, out, want)
		}
	}
	f(titles+`"SET","117647.05","0.133","0.040","0.111","0.183","0.343","3.079"`+"\n", speed{117647.05, 0.111, 0.343})
	f(titles+`"mget a, b","10.5","1","1","2","3","4","5"`+"\n", speed{10.5, 2, 4})
	f("\"p99_latency_ms\",\"rps\",\"p50_latency_ms\"\n\"3\",\"1\",\"2\"\n", speed{1, 2, 3})
}

func TestParseSpeedRefuses(t *testing.T) {
	f := func(out, want string) {
		t.Helper()
		if got, err := parseSpeed([]byte(out)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("parsed %+v, %v from %q: want an error with %q", got, err, out, want)
		}
	}
	f("", "version 6.2")
	f(titles, "version 6.2") // what is printed when the first reply is an error
	f("\"SET\",\"117647.05\"\n", "version 6.2")
	f("\"test\",\"rps\"\n\"SET\",\"1\"\n", `no column "p50_latency_ms"`)
	f(titles+`"SET","fast","1","1","1","1","1","1"`, "fast")
	f(titles+`"SET","0.00","1","1","1","1","1","1"`, "no requests")
	f("\"a\"b\n", "cannot read")
}

func TestLastLine(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if got := lastLine(text); got != want {
			t.Errorf("the last line of %q is %q: want %q", text, got, want)
		}
	}
	f("", "")
	f("one", "one")
	f("one\ntwo \n\n", "two")
}

// script stands in for redis-benchmark.
func script(t *testing.T, body string) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), redisBenchmark)
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+body), 0o700); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestLoad(t *testing.T) {
	f := func(body string, limit time.Duration, want string) {
		t.Helper()
		s, _, err := workloads[0].load(t.Context(), script(t, body), "127.0.0.1:1", 1, 1, limit)
		switch {
		case want == "" && (err != nil || s.ops != 5):
			t.Errorf("load gave %+v, %v: want 5 operations a second", s, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("load gave %+v, %v: want an error with %q", s, err, want)
		}
	}
	f("cat <<'END'\n"+titles+`"SET","5","1","1","1","1","1","1"`+"\nEND\n", runLimit, "")
	f("echo warning >&2; echo Error from server: ERR no >&2; exit 1", runLimit, "Error from server: ERR no")
	f("exec sleep 60", 50*time.Millisecond, "did not finish within 50ms")
}

func TestWorkloadNamesDiffer(t *testing.T) {
	names := namesOf(workloads, workloadName)
	if slices.Sort(names); len(slices.Compact(names)) != len(workloads) {
		t.Errorf("two workloads have one name: %v", names)
	}
}
