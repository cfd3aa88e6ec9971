require "tempfile"
require_relative "scenario"

# Ledger notes which jobs were added, and when each ran. Workers in other processes write to its file.
class Ledger
  # Seconds before a node's death, and behind it until nobody takes it for alive, from which anything may be missing
  # that it has acknowledged.
  LAST_MOMENTS = 1
  BEHIND = 0.25

  attr_reader :path

  def initialize(path = nil)
    @path = path || Tempfile.create("jobs").path
    @added = {} # when each job's reply came; nil if that was an error
  end

  # Notes that a job begins to run.
  def ran(name) = File.write(path, "#{name} #{now}\n", mode: "a")

  # Adds a job by the block. If it raises one of errors, the job may have been added.
  def add(name, errors = [])
    @added[name] = nil
    yield name
    @added[name] = now
  rescue *errors
    nil
  end

  # When each job has begun.
  def runs
    lines = File.readlines(path).map(&:split)
    lines.group_by(&:first).transform_values { |of_job| of_job.map { |_, at| Float(at) } }
  end

  # Waits until each job has run as often as the block says.
  def settle
    want = @added.keys.to_h { |name| [name, yield(name)] }
    until_it_works(Failure, WORK_SECONDS) { expect("jobs", @added.keys - runs.keys, []) }
    expect("runs", runs.transform_values(&:size).reject { |name, n| n == want[name] }, {})
  end

  # The same after a node was killed at a moment: then jobs that were refused need not have run, nor those that the
  # node took in its last moments. At most so many have run twice, or were lost with the reply to the pop that took them,
  # as with Redis.
  def settle_crash(crash, twice)
    left = -> { @added.compact.keys - runs.keys }
    last = @added.compact.select { |_, at| at.between?(crash - LAST_MOMENTS, crash + BEHIND) }.keys
    begin
      until_it_works(Failure, WORK_SECONDS) { expect("jobs", left.call - last, []) }
    rescue Failure
      raise if (left.call - last).size > twice
    end
    again = runs.select { |_, at| at.size > 1 && at.max > crash - LAST_MOMENTS }
    puts "count #{@added.size} jobs: #{@added.values.count(nil)} refused, #{left.call.size} lost, #{again.size} twice"
    raise Failure, "#{again.size} jobs have run twice" if again.size > twice
  end
end
