# Rails' cache store for Redis, sessions in it, and Action Cable's adapter: ruby rails.rb HOST:PORT[/DATABASE]

require_relative "ledger"
require "active_support"
require "active_support/cache/redis_cache_store"
require "active_support/core_ext/numeric/time"
require "active_support/core_ext/integer/time"
require "action_controller" # Action Cable needs a part of it
require "action_cable"
require "action_cable/subscription_adapter/redis"
require "action_dispatch"
require "rack/mock"

URL = "redis://#{ARGV[0]}"
SENT = 50 # messages
ERRORS = [] # which the store keeps to itself otherwise
STORE = { url: URL, error_handler: ->(exception:, **) { ERRORS << exception } }.freeze

def store(namespace) = ActiveSupport::Cache::RedisCacheStore.new(namespace: namespace, **STORE)

CACHE = store("rails")
MANY = (0...100).to_h { |i| ["many#{i}", { "number" => i, "text" => "compressed " * 200 }] }.freeze

# Runs the block, in which the store may meet no error.
def without_errors
  yield.tap { expect("errors", ERRORS.slice!(0..), []) }
end

def cache
  expect("fetch", CACHE.fetch("view", expires_in: TTL) { ["computed"] }, ["computed"])
  expect("fetch", CACHE.fetch("view") { raise "computed again" }, ["computed"])
  expect_ttl(CACHE.redis.ttl("rails:view"))
  expect("write", [CACHE.write("once", 1, unless_exist: true), CACHE.write("once", 2, unless_exist: true)], [true, false])
  expect("raw", [CACHE.write("raw", 5, raw: true), CACHE.read("raw", raw: true)], ["OK", "5"])
  expect("delete", [CACHE.exist?("once"), CACHE.delete("once"), CACHE.exist?("once")], [true, 1, false])
  CACHE.write("short", "lived", expires_in: 0.05)
  sleep 0.1
  expect("expired", CACHE.read("short"), nil)
end

# One process computes what has expired; another one reads the old value meanwhile.
def race
  options = { expires_in: TTL, race_condition_ttl: 10 }
  CACHE.fetch("raced", expires_in: 0.05, race_condition_ttl: 10) { "old" }
  sleep 0.1
  got = CACHE.fetch("raced", **options) do
    expect("what others read", CACHE.fetch("raced", **options) { raise "two compute" }, "old")
    "new"
  end
  expect("fetch", [got, CACHE.read("raced")], ["new", "new"])
end

def many
  CACHE.write_multi(MANY)
  expect("read_multi", CACHE.read_multi(*MANY.keys, "missing"), MANY)
  CACHE.write_multi({ "a" => 1, "b" => 2 }, expires_in: TTL)
  expect("fetch_multi", CACHE.fetch_multi("a", "b", "c") { |name| name * 2 }, { "a" => 1, "b" => 2, "c" => "cc" })
  expect("delete_multi", CACHE.delete_multi(%w[a b missing]), 2)
  CACHE.delete_matched("many2*")
  expect("what is left", CACHE.read_multi(*MANY.keys).size, 89)
end

def counters
  expect("increment", 3.times.map { CACHE.increment("visits", 2, expires_in: TTL) }, [2, 4, 6])
  expect("decrement", CACHE.decrement("visits"), 5)
  expect_ttl(CACHE.redis.ttl("rails:visits"))
end

def clear
  other = store("other")
  other.write("kept", 1)
  CACHE.clear
  expect("what is left", [CACHE.read("view"), other.read("kept")], [nil, 1])
end

# A web application that counts the visits of a session.
APP = ActionDispatch::Cookies.new(ActionDispatch::Session::CacheStore.new(lambda do |env|
  session = ActionDispatch::Request.new(env).session
  session["visits"] = session["visits"].to_i + 1
  [200, {}, [session["visits"].to_s]]
end, cache: store("sessions"), expire_after: TTL))

# Visits the application with a cookie. Returns what it answers, and the cookie.
def visit(cookie)
  answer = Rack::MockRequest.new(APP).get("/", "HTTP_COOKIE" => cookie.to_s)
  [answer.body.to_i, answer["Set-Cookie"].to_s[/^[^;]+/] || cookie]
end

def session
  first, cookie = visit(nil)
  expect("visits", [first, visit(cookie)[0], visit(nil)[0]], [1, 2, 1])
end

# A process of Action Cable: what it needs of a server.
Server = Struct.new(:config, :mutex, :event_loop, :logger)

def cable
  config = Struct.new(:cable).new({ url: URL, channel_prefix: "cable" })
  ActionCable::SubscriptionAdapter::Redis.new(
    Server.new(config, Monitor.new, ActionCable::Connection::StreamEventLoop.new, Logger.new($stderr))
  )
end

CABLES = [cable, cable].freeze
HEARD = CABLES.map { [] }

def broadcast(i) = CABLES[0].broadcast("news", i.to_s)

def all_heard(n)
  until_it_works(Failure, WORK_SECONDS) { expect("heard", HEARD.map(&:size).min >= n, true) }
  # Threads call those who listen, so the order is theirs.
  expect("messages", HEARD.map { |list| list.map(&:to_i).sort }, [(0...n).to_a] * 2)
end

def broadcasts
  ready = Queue.new
  CABLES.zip(HEARD) { |of, list| of.subscribe("news", ->(m) { list << m }, -> { ready << true }) }
  2.times { ready.pop }
  SENT.times { |i| broadcast(i) }
  all_heard(SENT)
end

def replace
  cookies = [nil] * 10
  visits = 0
  n = while_replaced do |i|
    without_errors do
      broadcast(SENT + i)
      CACHE.write_multi("page#{i}" => i, "view#{i}" => -i)
      expect("read", CACHE.read("page#{i / 2}"), i / 2)
      expect("increment", CACHE.increment("meanwhile"), i + 1)
      visits, cookies[i % 10] = visit(cookies[i % 10])
      expect("visits", visits, i / 10 + 1)
    end
  end
  all_heard(SENT + n)
  want = (0...n).flat_map { |i| [["page#{i}", i], ["view#{i}", -i]] }.to_h
  expect("read_multi", CACHE.read_multi(*want.keys), want)
  CABLES.each(&:shutdown) # a broken connection ends the process of Action Cable
end

# What was written in the last moments of a node that dies may be lost. The store itself hides that it fails.
def crash
  written = {}
  counted = Hash.new { |all, n| all[n] = [] } # when each count was answered
  killed = while_crashed do |i|
    written["crash#{i}"] = now if CACHE.write("crash#{i}", i)
    n = CACHE.increment("crashes")
    counted[n] << now if n
  end
  ERRORS.map(&:message).tally.each { |why, n| warn "#{n} times #{why}" }
  refused = ERRORS.slice!(0..).size
  kept = without_errors { CACHE.read_multi(*written.keys) }
  lost = written.except(*kept.keys)
  twice = counted.select { |_, at| at.size > 1 }
  puts "count #{written.size} writes: #{refused} refused, #{lost.size} lost; #{twice.size} counts twice"
  last = killed - Ledger::LAST_MOMENTS..killed + Ledger::BEHIND
  expect("lost", lost.reject { |_, at| last.cover?(at) }, {})
  expect("counted twice", twice.reject { |_, at| last.cover?(at[0]) }, {})
end

puts "version #{ActiveSupport::VERSION::STRING}"
report("cache") { without_errors { cache } }
report("race") { without_errors { race } }
report("many") { without_errors { many } }
report("counters") { without_errors { counters } }
report("clear") { without_errors { clear } }
report("session") { without_errors { session } }
report("broadcast") { broadcasts }
report("replace") { replace }
report("crash") { crash }
exit!(0) # whatever threads are left
