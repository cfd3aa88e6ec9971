# The scenario of ../README.md, and the result protocol, for all programs here.

require "set"

TTL = 100
PIPELINED = 500 # SETs, and as many GETs
WALKED = 300 # fields, and members
RECONNECT_SECONDS = 20
WORK_SECONDS = 60 # for what workers do that start first, on a busy machine
$stdout.sync = true

# A step's reply was not the one expected.
class Failure < StandardError; end

def now = Process.clock_gettime(Process::CLOCK_REALTIME)

def expect(what, got, want)
  raise Failure, "#{what} gives #{got.inspect[0, 200]}, want #{want.inspect[0, 200]}" unless got == want
end

def expect_ttl(got)
  raise Failure, "TTL is #{got}" unless got.positive? && got <= TTL
end

# Runs one step and prints its line.
def report(step)
  yield
  puts "ok #{step}"
rescue StandardError => e # whatever a library raises, the step has failed
  puts "FAIL #{step}: #{e.class}: #{e.message} #{e.backtrace[0]}".gsub("\n", " ")
end

# Repeats the block while it raises one of errors, which a library may do until the proxy is back.
def until_it_works(errors, seconds = RECONNECT_SECONDS)
  deadline = now + seconds
  begin
    yield
  rescue *errors
    raise if now > deadline

    sleep 0.02
    retry
  end
end

# Has the driver do what word says, and repeats the block until it has done so. Returns how often, and the driver's
# last words.
def while_driver(word, pause)
  puts word
  $stdin.gets # it begins
  last = nil
  waiter = Thread.new { last = $stdin.gets }
  i = 0
  loop do
    yield i
    i += 1
    return [i, last] if waiter.join(pause)
  end
end

# Has the driver replace the cluster's nodes meanwhile. Returns how often the block was called.
def while_replaced(pause = 0.01, &work) = while_driver("replace", pause, &work)[0]

# Has the driver kill a node, start another one and restart the proxies meanwhile. Returns when the node was killed.
def while_crashed(pause = 0.01, &work) = Float(while_driver("crash", pause, &work)[1])

# Starts a process that ends with this one. What it prints goes to the driver, as problems.
def start(*command)
  Process.spawn(*command, in: File::NULL, out: $stderr, pgroup: nil).tap do |pid|
    at_exit { Process.kill(:KILL, pid) rescue Errno::ESRCH }
  end
end
