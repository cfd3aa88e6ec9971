# Sidekiq: ruby sidekiq_jobs.rb HOST:PORT[/DATABASE]
#
# Its processes report by transactions over several slots.

require_relative "ledger"

LEDGER = Ledger.new
ENV["LEDGER"] = LEDGER.path
ENV["REDIS_URL"] = "redis://#{ARGV[0]}"
require "sidekiq/api"
require_relative "sidekiq_worker"

QUEUES = %w[urgent default low].freeze
CONCURRENCY = 4
EVENTS = 3 # by which jobs may run twice: a node dies, and two proxies restart
Sidekiq.logger.level = Logger::WARN

def push(name, options = {}) = Work.set(options).perform_async(name)

def all_run = LEDGER.settle { |name| name.start_with?("again") ? 2 : 1 }

def empty
  until_it_works(Failure, WORK_SECONDS) do
    sizes = QUEUES.map { |name| Sidekiq::Queue.new(name).size }
    sets = [Sidekiq::ScheduledSet, Sidekiq::RetrySet, Sidekiq::DeadSet].map { |set| set.new.size }
    expect("what is left", sizes + sets, [0] * 6)
  end
end

def queue
  30.times { |i| LEDGER.add("plain#{i}") { |name| push(name, queue: QUEUES[i % 3]) } }
  bulk = (0...20).map { |i| "bulk#{i}" }
  bulk.each { |name| LEDGER.add(name) {} }
  Work.perform_bulk(bulk.map { |name| [name] })
  10.times { |i| LEDGER.add("later#{i}") { |name| Work.perform_in(1, name) } }
  5.times { |i| LEDGER.add("again#{i}") { |name| push(name) } }
  sizes = Sidekiq::Queue.all.to_h { |q| [q.name, q.size] }
  expect("queues", sizes, { "urgent" => 10, "default" => 35, "low" => 10 })
  expect("scheduled", Sidekiq::ScheduledSet.new.size, 10)
  $worker = start("sidekiq", "-r", "#{__dir__}/sidekiq_worker.rb", "-c", CONCURRENCY.to_s,
                  *QUEUES.flat_map { |name| ["-q", name] })
  retries = Sidekiq::RetrySet.new
  until_it_works(Failure, WORK_SECONDS) { expect("to be retried", retries.size, 5) }
  expect("error", retries.map(&:item).map { |job| job["error_message"] }.uniq, ["once more"])
  retries.retry_all
  all_run
  empty
end

# What the web interface shows and does.
def api
  ids = (0...3).map { |i| Work.perform_in(1000, "never#{i}") }
  scheduled = Sidekiq::ScheduledSet.new
  expect("job", scheduled.find_job(ids[1]).args, ["never1"])
  scheduled.find_job(ids[0]).delete
  scheduled.find_job(ids[1]).kill
  scheduled.find_job(ids[2]).reschedule(Time.now.to_f + 2000)
  dead = Sidekiq::DeadSet.new
  expect("dead", dead.map(&:jid), [ids[1]])
  expect("scheduled", scheduled.scan("never").map(&:jid), [ids[2]])
  scheduled.clear
  dead.clear
  idle = Sidekiq::Queue.new("idle")
  3.times { |i| push("idle#{i}", queue: "idle") }
  idle.find { |job| job.args == ["idle1"] }.delete
  expect("jobs", idle.map(&:args), [["idle2"], ["idle0"]].sort.reverse)
  expect("latency", idle.latency.positive?, true)
  expect("clear", [idle.clear, idle.size], [[1, true], 0])
  until_it_works(Failure, WORK_SECONDS) do # they report every five seconds
    stats = Sidekiq::Stats.new
    expect("statistics", [stats.processed, stats.failed, stats.processes_size], [70, 5, 1])
  end
  expect("its queues", Sidekiq::ProcessSet.new.first["queues"].sort, QUEUES.sort)
  expect("today", Sidekiq::Stats::History.new(1).processed.values, [70])
end

def replace
  while_replaced do |i|
    LEDGER.add("meanwhile#{i}") { |name| i % 5 == 0 ? Work.perform_in(0.5, name) : push(name, queue: QUEUES[i % 3]) }
  end
  all_run
  empty
end

def crash
  killed = while_crashed(0.02) do |i|
    LEDGER.add("crash#{i}", [Redis::BaseError]) do |name|
      i % 5 == 0 ? Work.perform_in(0.5, name) : push(name, queue: QUEUES[i % 3])
    end
  end
  LEDGER.settle_crash(killed, EVENTS * CONCURRENCY)
  empty
end

def stop
  until_it_works(NoMethodError) { Sidekiq::ProcessSet.new.first.stop! }
  Process.wait($worker)
  expect("exit code", $?.exitstatus, 0)
end

puts "version #{Sidekiq::VERSION}"
report("queue") { queue }
report("api") { api }
report("replace") { replace }
report("crash") { crash }
report("stop") { stop }
exit
