package resp

import "testing"

// FuzzParser compares Parser with the oracle, in every splitting, with limits small
// enough for the fuzzer to meet them.
func FuzzParser(f *testing.F) {
	for _, in := range requestCases {
		f.Add([]byte(in), false)
	}
	for _, in := range largeRequests {
		f.Add([]byte(in), false)
	}
	for _, c := range brokenRequests {
		f.Add([]byte(c.in[:min(len(c.in), 300)]), true)
	}
	for _, c := range strictRequests {
		f.Add([]byte(c.in), true)
	}
	tight := Limits{MaxBulk: 40, MaxArgs: 12, MaxInline: 50, MaxRequest: 120, Unauthenticated: true}
	f.Fuzz(func(t *testing.T, data []byte, limited bool) {
		tight := tight
		if len(data) > 2000 {
			return // the oracle and the one-byte splitting are quadratic
		}
		if limited {
			checkRequests(t, data, tight)
			tight.LargeBulk = 1 + len(data)%20
			checkRequests(t, data, tight)
		} else {
			checkRequests(t, data, Limits{LargeBulk: 1 + len(data)%20})
			checkRequests(t, data, DefaultLimits)
		}
	})
}

// FuzzScanner compares Scanner with the oracle, in every splitting.
func FuzzScanner(f *testing.F) {
	for _, in := range replyCases {
		f.Add([]byte(in))
	}
	for _, in := range brokenReplies {
		f.Add([]byte(in))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) <= 2000 {
			checkReplies(t, data)
		}
	})
}

// FuzzRoundTrip encodes arguments and expects the parser to give them back, and errors
// of any text to stay one reply.
func FuzzRoundTrip(f *testing.F) {
	f.Add([]byte("SET"), []byte("key"), []byte("value\r\n"))
	f.Add([]byte(""), []byte("\x00"), []byte("$5\r\n"))
	f.Fuzz(func(t *testing.T, a, b, c []byte) {
		request := AppendRequest(nil, a, b, c)
		var p Parser
		if got := p.Parse(request); got != Done || p.Len() != len(request) || len(p.Args()) != 3 {
			t.Fatalf("%q: got %v of %d bytes", request, got, p.Len())
		}
		for i, want := range [][]byte{a, b, c} {
			if string(p.Args()[i]) != string(want) {
				t.Fatalf("argument %d: got %q, want %q", i, p.Args()[i], want)
			}
		}
		var s Scanner
		reply := AppendErrorBytes(nil, a[:min(len(a), 1000)])
		if got := s.Scan(reply); got != Done || s.Len() != len(reply) {
			t.Fatalf("%q: got %v of %d bytes", reply, got, s.Len())
		}
	})
}
