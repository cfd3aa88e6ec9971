package wide

import "testing"

// TestChoose checks that a node's key is chosen in proportion to the node's share of the keys,
// whatever the order of the answers.
func TestChoose(t *testing.T) {
	const tries = 4000
	small := 0
	for i := range tries {
		answers := []string{"*2\r\n:1\r\n$1\r\ns\r\n", "*0\r\n", "*2\r\n:7\r\n$1\r\nm\r\n", "*2\r\n:2\r\n$1\r\nl\r\n"}
		if i%2 > 0 {
			answers[0], answers[3] = answers[3], answers[0]
		}
		var m randomKey
		for _, a := range answers {
			if m.Add(Answer{Reply: []byte(a)}) != nil {
				t.Fatalf("%q is refused", a)
			}
		}
		if string(m.chosen) == "$1\r\ns\r\n" {
			small++
		}
	}
	if small < tries/10*7/10 || small > tries/10*13/10 {
		t.Errorf("one key of ten was chosen %d times of %d", small, tries)
	}
	var m randomKey
	for _, bad := range []string{":1\r\n", "*1\r\n:1\r\n", "*2\r\n:0\r\n$1\r\nk\r\n",
		"*2\r\n:-1\r\n$1\r\nk\r\n", "*2\r\n$1\r\n1\r\n$1\r\nk\r\n"} {
		if m.Add(Answer{Reply: []byte(bad)}) == nil || m.among != 0 || m.chosen != nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
