package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// scriptTest is a command that redis-benchmark sends, and what it costs beside others.
type scriptTest struct {
	name     string
	requests int // of a run at pipeline 1, times 2 at pipeline 16
	random   int // the range of __rand_int__
	words    []string
	value    string // not empty: all keys are set to it before
}

const (
	// drawnKeys is how many keys there are: several times as many as a test deletes.
	drawnKeys = 400_000
	// randomKey is a key as redis-benchmark draws it.
	randomKey  = "key:__rand_int__"
	tokenValue = "01234567890123456789012345678901"
)

// bodies are the scripts that are called by their names.
var bodies = map[string]string{
	"compare and delete": "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end",
	"sliding window": `local now, window, limit = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
redis.call('zremrangebyscore', KEYS[1], 0, now - window)
local n = redis.call('zcard', KEYS[1])
if n >= limit then return 0 end
redis.call('zadd', KEYS[1], now, ARGV[4])
redis.call('pexpire', KEYS[1], window)
return 1`,
	"1,000 INCR":        "for i=1,1000 do redis.call('incr',KEYS[1]) end return 1",
	"JSON of 10 kB":     "return #cjson.encode(cjson.decode(redis.call('get',KEYS[1])))",
	"10,000 additions":  "local n = 0 for i=1,10000 do n = n + i end return n",
	"HGETALL, 3 fields": "local h = redis.call('hgetall',KEYS[1]) if #h == 0 then redis.call('hset',KEYS[1],'a',1,'b',2,'c',3) end return #h",
}

func scriptTests() []scriptTest {
	plain := func(name string) scriptTest {
		return scriptTest{name: name, requests: 50_000, random: drawnKeys, words: []string{name, randomKey}, value: tokenValue}
	}
	byName := func(name string, requests int, words ...string) scriptTest {
		return scriptTest{name: name, requests: requests, random: drawnKeys, words: append([]string{"EVALSHA", name, "1", randomKey}, words...)}
	}
	deleting, decoding := byName("compare and delete", 50_000, tokenValue), byName("JSON of 10 kB", 2_000)
	deleting.value = tokenValue
	decoding.value, decoding.random = jsonOf(10_000), 1_000
	cold := byName("a new body each", 10_000)
	cold.random, cold.words = 2_000_000_000, []string{"EVAL", "return redis.call('get',KEYS[1]) --__rand_int__", "1", randomKey}
	return []scriptTest{
		plain("GET"), plain("DEL"), deleting, byName("sliding window", 30_000, "1000000", "60000", "10", "m__rand_int__"),
		byName("HGETALL, 3 fields", 30_000), cold, byName("10,000 additions", 5_000), byName("1,000 INCR", 1_500), decoding,
	}
}

// jsonOf is an array of objects, of about so many bytes.
func jsonOf(bytes int) string {
	var all []string
	for n := 0; n < bytes; {
		object := fmt.Sprintf(`{"id":%d,"name":"user %d","score":%d.5,"tags":["a","b"],"on":true}`, len(all), len(all), len(all))
		all = append(all, object)
		n += len(object) + 1
	}
	return "[" + strings.Join(all, ",") + "]"
}

// runScripts runs scripts on all peers in turns, and prints them.
func (r *race) runScripts(ctx context.Context, o typesOptions, w io.Writer) error {
	tool, err := findTool(redisBenchmark)
	if err != nil {
		return err
	}
	tests := scriptTests()
	return r.compareWithRedis(ctx, o, w, "Scripts", "GET, DEL and compare and delete find their keys.", namesOf(tests, scriptTestName),
		func(l *live, test, pipeline, part int) (cost, error) {
			return r.runScript(ctx, tool, l, tests[test], pipeline, part)
		})
}

func scriptTestName(t scriptTest) string { return t.name }

// runScript runs one test once.
func (r *race) runScript(ctx context.Context, tool string, l *live, test scriptTest, pipeline, part int) (c cost, err error) {
	fmt.Fprintf(r.say, "%s at pipeline %d on %s\n", test.name, pipeline, l.name)
	t, err := dialTalk(ctx, l.addr)
	if err != nil {
		return c, err
	}
	defer t.close()
	words := append([]string(nil), test.words...)
	for _, command := range []string{"FLUSHALL", "SCRIPT FLUSH"} { // very many bodies make redis-server slow
		if _, err := t.do(strings.Fields(command)...); err != nil {
			return c, err
		}
	}
	if words[0] == "EVALSHA" {
		if words[1], err = t.do("SCRIPT", "LOAD", bodies[words[1]]); err != nil {
			return c, err
		}
	}
	if test.value != "" {
		if err := setDrawn(ctx, t, test.random, test.value); err != nil {
			return c, err
		}
	}
	first := append([]string(nil), words...) // redis-benchmark counts errors as replies
	for i := range first {
		first[i] = strings.ReplaceAll(first[i], "__rand_int__", "000000000000")
	}
	if _, err := t.do(first...); err != nil {
		return c, err
	}
	n := test.requests / part
	if pipeline > 1 {
		n *= 2
	}
	return costOfBenchmark(ctx, tool, l, pipeline, n, append([]string{"-r", strconv.Itoa(test.random)}, words...)...)
}
