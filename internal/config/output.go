package config

import (
	"strconv"
	"strings"
	"time"

	"github.com/dunlin-cache/dunlin/internal/pubsub"
)

// Redis's texts about client-output-buffer-limit, and one of Dunlin's.
const (
	errOutputWords  = "Wrong number of arguments in buffer limit configuration."
	errOutputClass  = "Invalid client class specified in buffer limit configuration."
	errOutputNumber = "Error in hard, soft or soft_seconds setting in buffer limit configuration."
	errOutputFixed  = "only the limits of the class pubsub can change"
)

// initialOutput are Redis's limits. Those of subscribers hold here too. Those of other clients are only
// shown: netloop bounds what clients leave unread.
const initialOutput = "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60"

const pubSubClass = "pubsub"

// checkOutput returns the limits of all classes when value, which may name some of them, has changed those
// in present.
func checkOutput(value, present string) (stored, problem string) {
	words, all := strings.Fields(value), strings.Fields(present)
	if len(words)%4 != 0 {
		return "", errOutputWords
	}
	for ; len(words) > 0; words = words[4:] {
		class := strings.ToLower(words[0])
		if class == "replica" {
			class = "slave"
		}
		at := 0
		for at < len(all) && all[at] != class {
			at += 4
		}
		if at >= len(all) {
			return "", errOutputClass
		}
		for i, word := range words[1:4] {
			n, ok := parseMemory(word)
			if i == 2 { // seconds have no unit
				seconds, err := strconv.ParseInt(word, 10, 32)
				n, ok = seconds, err == nil && seconds >= 0
			}
			switch text := strconv.FormatInt(n, 10); {
			case !ok:
				return "", errOutputNumber
			case class != pubSubClass && text != all[at+1+i]:
				return "", errOutputFixed
			default:
				all[at+1+i] = text
			}
		}
	}
	return strings.Join(all, " "), ""
}

// SubscriberLimits returns what subscribers may leave unread.
func (c *Config) SubscriberLimits() pubsub.Limits {
	_, text, _ := strings.Cut(c.get("client-output-buffer-limit"), pubSubClass+" ")
	var n [3]int
	for i, word := range strings.Fields(text) {
		n[i], _ = strconv.Atoi(word)
	}
	return pubsub.Limits{Hard: n[0], Soft: n[1], SoftTime: time.Duration(n[2]) * time.Second}
}
