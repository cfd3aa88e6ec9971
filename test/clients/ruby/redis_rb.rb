# redis-rb, Ruby's client: ruby redis_rb.rb HOST:PORT

require "redis"
require_relative "scenario"

SENT = 20 # messages
SHORTLY = 0.1 # seconds until a pop of an empty list gives up
LONG = 10 # seconds for what is pushed
URL = "redis://#{ARGV[0]}"
REDIS = Redis.new(url: URL)
ADD = "redis.call('HINCRBY', KEYS[1], ARGV[1], ARGV[2]) return redis.call('HVALS', KEYS[1])"

def key(name) = "redis-rb:#{name}"
def keys(name, count) = (0...count).map { |i| key("#{name}#{i}") }
def values(of) = of.to_h { |k| [k, "value of #{k}"] }

def get_or_set
  k, value = key("cached"), "computed\r\n\0"
  expect("GET of a missing key", REDIS.get(k), nil)
  expect("SET", REDIS.set(k, value, ex: TTL), "OK")
  expect("GET", REDIS.get(k), value)
  expect_ttl(REDIS.ttl(k))
end

def many
  all = values(keys("many", 100))
  expect("MSET", REDIS.mapped_mset(all), "OK")
  expect("MGET", REDIS.mapped_mget(key("missing"), *all.keys), { key("missing") => nil }.merge(all))
end

def delete = expect("DEL", REDIS.del(key("missing"), *keys("many", 100)), 100)

def scan
  gone, kept = keys("scanned:", 300), keys("kept:", 10)
  REDIS.mapped_mset(values(gone + kept))
  found = REDIS.scan_each(match: key("scanned:*")).to_a.uniq
  expect("SCAN", found.sort, gone.sort)
  expect("DEL", REDIS.del(*found), 300)
  expect("SCAN of what was kept", REDIS.scan_each(match: key("kept:*")).to_a.uniq.sort, kept.sort)
end

def rate_limit
  k = key("limited")
  5.times do |i|
    expect("INCR", REDIS.incr(k), i + 1)
    expect("EXPIRE", REDIS.expire(k, TTL), true) if i.zero?
  end
  expect_ttl(REDIS.ttl(k))
end

def delete_if_equal(key, value)
  REDIS.watch(key) do
    next REDIS.unwatch && nil unless REDIS.get(key) == value

    REDIS.multi { |t| t.del(key) }
  end
end

def lock
  k = key("lock")
  expect("SET NX", REDIS.set(k, "mine", nx: true, ex: TTL), true)
  expect("the second SET NX", REDIS.set(k, "theirs", nx: true, ex: TTL), false)
  expect("compare and delete by another", delete_if_equal(k, "theirs"), nil)
  expect("compare and delete", delete_if_equal(k, "mine"), [1])
  expect("GET of the released lock", REDIS.get(k), nil)
end

def pipeline
  all = keys("piped", PIPELINED)
  got = REDIS.pipelined do |p|
    all.each do |k|
      p.set(k, k)
      p.get(k)
    end
  end
  expect("a pipeline", got, all.flat_map { |k| ["OK", k] })
end

def hash
  k, many = key("hash"), key("fields")
  expect("HSET", REDIS.hset(k, { "name" => "Ada", "visits" => 41 }), 2)
  expect("HINCRBY", REDIS.hincrby(k, "visits", 1), 42)
  expect("HGETALL", REDIS.hgetall(k), { "name" => "Ada", "visits" => "42" })
  expect("HMGET", REDIS.mapped_hmget(k, "name", "none"), { "name" => "Ada", "none" => nil })
  expect("HEXPIRE", REDIS.call("HEXPIRE", k, TTL, "FIELDS", 1, "visits"), [1])
  expect("HDEL", REDIS.hdel(k, "name", "none"), 1)
  fields = (0...WALKED).to_h { |i| ["field#{i}", i.to_s] }
  expect("HMSET", REDIS.mapped_hmset(many, fields), "OK")
  expect("HSCAN", REDIS.hscan_each(many).to_h, fields)
end

def set
  one, other = key("{set}:1"), key("{set}:2")
  members = keys("member", WALKED)
  expect("SADD", REDIS.sadd(one, members), WALKED)
  expect("SADD", REDIS.sadd(other, [*members[1..2], "else"]), 3)
  expect("SISMEMBER", REDIS.sismember(other, "else"), true)
  expect("SINTER", REDIS.sinter(one, other).sort, members[1..2])
  expect("SREM", REDIS.srem(other, ["else"]), 1)
  expect("SMEMBERS", REDIS.smembers(other).sort, members[1..2])
  expect("SSCAN", REDIS.sscan_each(one).to_a.uniq.sort, members.sort)
end

def sorted_set
  k = key("board")
  expect("ZADD", REDIS.zadd(k, [[1, "Ada"], [2.5, "Bob"], [3, "Cy"]]), 3)
  expect("ZINCRBY", REDIS.zincrby(k, 2, "Ada"), 3.0)
  expect("ZREVRANGE", REDIS.zrevrange(k, 0, 1, with_scores: true), [["Cy", 3.0], ["Ada", 3.0]])
  expect("ZRANK", REDIS.zrank(k, "Bob"), 0)
  expect("ZRANGEBYSCORE", REDIS.zrangebyscore(k, 2, "(3"), ["Bob"])
  expect("ZSCAN", REDIS.zscan_each(k).to_h, { "Ada" => 3.0, "Bob" => 2.5, "Cy" => 3.0 })
  expect("ZPOPMIN", REDIS.zpopmin(k), ["Bob", 2.5])
end

def list
  queue, done = key("{list}:queue"), key("{list}:done")
  expect("RPUSH", REDIS.rpush(queue, %w[a b c d]), 4)
  expect("RPOPLPUSH", REDIS.rpoplpush(queue, done), "d")
  expect("BLPOP", REDIS.blpop(key("{list}:none"), queue, timeout: 1), [queue, "a"])
  expect("LRANGE", REDIS.lrange(queue, 0, -1), %w[b c])
  expect("LTRIM", REDIS.ltrim(queue, 0, 0), "OK")
  expect("LLEN", REDIS.llen(queue), 1)
end

def geo
  k = key("towns")
  expect("GEOADD", REDIS.geoadd(k, 13.361389, 38.115556, "Palermo", 15.087269, 37.502669, "Catania"), 2)
  expect("GEODIST", REDIS.geodist(k, "Palermo", "Catania", "km").to_f.round, 166)
  expect("GEORADIUS", REDIS.georadius(k, 15, 37, 200, "km", sort: "asc"), %w[Catania Palermo])
end

def transaction
  counter, log = key("{t}:n"), key("{t}:log")
  got = REDIS.multi do |t|
    t.incrby(counter, 5)
    t.rpush(log, %w[a b])
    t.lrange(log, 0, -1)
  end
  expect("MULTI", got, [5, 2, %w[a b]])
  other = Redis.new(url: URL)
  lost = REDIS.watch(counter) do
    other.incr(counter)
    REDIS.multi { |t| t.set(counter, "overwritten") }
  end
  expect("MULTI behind another's change", [lost, REDIS.get(counter)], [nil, "6"])
end

def script
  k = key("scripted")
  expect("EVAL", REDIS.eval(ADD, keys: [k], argv: ["n", 5]), ["5"])
  sha = REDIS.script(:load, ADD)
  expect("EVALSHA", REDIS.evalsha(sha, keys: [k], argv: ["n", 6]), ["11"])
  expect("EXISTS", REDIS.script(:exists, sha), true)
  got = begin
    REDIS.eval("return redis.call('INCR', KEYS[1])", keys: [k])
  rescue Redis::CommandError => e
    e.message[/WRONGTYPE/]
  end
  expect("INCR of a hash", got, "WRONGTYPE")
end

# Two connections listen, to a channel and to a pattern, until they have heard all.
def publish
  heard = { key("news") => Queue.new, key("ne*") => Queue.new }
  ready = Queue.new
  ears = heard.map do |name, queue|
    Thread.new do
      pattern = name.end_with?("*")
      client = Redis.new(url: URL)
      client.public_send(pattern ? :psubscribe : :subscribe, name) do |on|
        on.public_send(pattern ? :psubscribe : :subscribe) { ready << name }
        on.public_send(pattern ? :pmessage : :message) do |*words|
          queue << words
          client.public_send(pattern ? :punsubscribe : :unsubscribe, name) if words.last == "last"
        end
      end
    end
  end
  2.times { ready.pop }
  sent = [*(0...SENT).map(&:to_s), "last"]
  sent.each { |message| expect("PUBLISH", REDIS.publish(key("news"), message), 2) }
  ears.each { |ear| expect("the listener ends", ear.join(WORK_SECONDS), ear) }
  heard.each do |name, queue|
    words = name.end_with?("*") ? [name, key("news")] : [name]
    expect(name, Array.new(queue.size) { queue.pop }, sent.map { |message| [*words, message] })
  end
end

# Another connection pushes in a thread of its own, as soon as a client is blocked. Returns what the block does.
def pushed(push)
  other = Redis.new(url: URL)
  thread = Thread.new do
    until_it_works([Failure]) { expect("blocked", other.info("clients")["blocked_clients"], "1") }
    push.call(other)
  end
  thread.report_on_exception = false
  yield.tap { thread.join }
end

# Pops an empty list until the time is up, and then what another connection pushes.
def blocking
  none, queue, done, board = key("none"), key("{wait}:queue"), key("{wait}:done"), key("waited")
  start = now
  expect("BLPOP of an empty list", REDIS.blpop(none, timeout: SHORTLY), nil)
  expect("its time is up", now - start >= SHORTLY, true)
  got = pushed(->(c) { c.rpush(queue, "a") }) { REDIS.blpop(none, queue, timeout: LONG) }
  expect("BLPOP", got, [queue, "a"])
  got = pushed(->(c) { c.rpush(queue, %w[b c]) }) { REDIS.blmove(queue, done, "LEFT", "RIGHT", timeout: LONG) }
  expect("BLMOVE", got, "b")
  expect("the source and the target", [queue, done].map { |k| REDIS.lrange(k, 0, -1) }, [["c"], ["b"]])
  got = pushed(->(c) { c.zadd(board, 1.5, "Ada") }) { REDIS.bzpopmin(board, timeout: LONG) }
  expect("BZPOPMIN", got, [board, "Ada", 1.5])
end

def reconnect
  puts "restart"
  $stdin.gets
  until_it_works([Redis::BaseError]) { REDIS.set(key("cached"), "again") }
  expect("GET", REDIS.get(key("cached")), "again")
  pipeline
end

puts "version #{Redis::VERSION}"
report("connect") { expect("PING", REDIS.ping, "PONG") }
report("get-or-set") { get_or_set }
report("many") { many }
report("delete") { delete }
report("scan") { scan }
report("rate-limit") { rate_limit }
report("lock") { lock }
report("pipeline") { pipeline }
report("hash") { hash }
report("set") { set }
report("sorted-set") { sorted_set }
report("list") { list }
report("geo") { geo }
report("transaction") { transaction }
report("script") { script }
report("publish") { publish }
report("blocking") { blocking }
report("reconnect") { reconnect }
