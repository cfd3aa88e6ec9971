<?php

// Laravel's cache, queue, sessions and limiters: php laravel.php CLIENT HOST:PORT[/DATABASE]
//
// CLIENT is phpredis or predis. The scripts of a queue have keys of several slots: its name has a tag, as Laravel's
// manual says for Redis Cluster, unless the database is pinned.

require __DIR__.'/scenario.php';
require 'Predis/autoload.php';
require 'Illuminate/Cache/autoload.php';
require 'Illuminate/Events/autoload.php';
require 'Illuminate/Queue/autoload.php';
require 'Illuminate/Session/autoload.php';

use Illuminate\Cache\RateLimiter;
use Illuminate\Cache\RedisStore;
use Illuminate\Cache\Repository;
use Illuminate\Container\Container;
use Illuminate\Contracts\Debug\ExceptionHandler;
use Illuminate\Events\Dispatcher;
use Illuminate\Queue\Capsule\Manager as Queues;
use Illuminate\Queue\Worker;
use Illuminate\Queue\WorkerOptions;
use Illuminate\Redis\RedisManager;
use Illuminate\Session\CacheBasedSessionHandler;
use Illuminate\Session\Store as Session;

[, $client, $address] = $argv;
[$host, $port, $database] = preg_split('#[:/]#', $address.'/0');
$queueName = $database === '0' ? '{default}' : 'default';
const SENT = 50; // messages
const EVENTS = 3; // by which a job may run twice: a node dies, and two proxies restart

$app = Container::getInstance();
$server = ['host' => $host, 'port' => (int) $port, 'database' => (int) $database];
$redis = new RedisManager($app, $client, [
    'options' => ['prefix' => 'laravel_'],
    'default' => $server,
    'listener' => $server + ['read_timeout' => 86400, 'read_write_timeout' => -1],
]);
$app->instance('redis', $redis);
$app->instance('events', new Dispatcher($app));
$store = new RedisStore($redis, 'cache:');
$cache = new Repository($store);
$queues = new Queues($app);
$queues->addConnection([
    'driver' => 'redis', 'connection' => 'default', 'queue' => $queueName, 'retry_after' => 5, 'block_for' => 1,
]);
$queue = $queues->getConnection();

/** What workers and listeners do is in this file: a word and a time, line by line. */
$ledger = getenv('LEDGER') ?: tempnam(sys_get_temp_dir(), 'laravel');

function note(string $word): void
{
    file_put_contents($GLOBALS['ledger'], "$word ".microtime(true)."\n", FILE_APPEND);
}

/** Returns when each job has begun to run. */
function runs(): array
{
    $runs = [];
    foreach (file($GLOBALS['ledger'], FILE_IGNORE_NEW_LINES) as $line) {
        [$name, $at] = explode(' ', $line);
        $runs[$name][] = (float) $at;
    }

    return $runs;
}

class Work
{
    /** Some jobs fail the first time. */
    public function fire($job, array $data): void
    {
        note($data['name']);
        if (str_starts_with($data['name'], 'again') && $job->attempts() === 1) {
            throw new Exception('once more');
        }
        $job->delete();
    }
}

class Handler implements ExceptionHandler
{
    public function report(Throwable $e): void
    {
        fwrite(STDERR, get_class($e).': '.$e->getMessage()."\n");
    }

    public function shouldReport(Throwable $e): bool
    {
        return true;
    }

    public function render($request, Throwable $e)
    {
        throw $e;
    }

    public function renderForConsole($output, Throwable $e): void
    {
        $this->report($e);
    }
}

/** Ends this process soon after the one that has started it. */
function endWithParent(): void
{
    pcntl_async_signals(true);
    pcntl_signal(SIGALRM, function () {
        if (posix_getppid() === 1) {
            exit(1);
        }
        pcntl_alarm(1);
    });
    pcntl_alarm(1);
}

switch (getenv('ROLE')) {
    case 'work': // a process that is started again whenever it ends, as with a supervisor
        $app['events']->listen('*', fn () => posix_getppid() === 1 ? exit(1) : null);
        $worker = new Worker($queues->getQueueManager(), $app['events'], new Handler, fn () => false);
        $worker->setCache($cache);
        exit($worker->daemon('default', $queueName, new WorkerOptions('default', 0, 128, 60, 0, 2)));
    case 'listen':
        endWithParent();
        $redis->connection('listener')->psubscribe(["$client:new*"], fn ($message) => note("heard$message"));
        exit(1);
}

/** Starts this program in a role. */
function start(string $role, bool $again): mixed
{
    global $argv, $ledger;
    $loop = $again ? 'while [ -e "$LEDGER" ] && kill -0 "$MAIN" 2>/dev/null; do "$@"; done' : 'exec "$@"';
    $environment = ['ROLE' => $role, 'LEDGER' => $ledger, 'MAIN' => getmypid()] + getenv();
    $command = ['sh', '-c', $loop, 'sh', PHP_BINARY, __FILE__, $argv[1], $argv[2]];

    return proc_open($command, [['file', '/dev/null', 'r'], STDERR, STDERR], $pipes, null, $environment);
}

$added = []; // when the reply about each job came; null if that was an error

function add(string $name, int $delay = 0): void
{
    global $queue, $added;
    $added[$name] = null;
    $delay ? $queue->later($delay, Work::class, ['name' => $name]) : $queue->push(Work::class, ['name' => $name]);
    $added[$name] = microtime(true);
}

/** Waits until all jobs have run, and checks that each has done so as often as it should. */
function allRun(): void
{
    global $added;
    untilItWorks(Failure::class, fn () => expect('jobs that have not run', array_diff_key($added, runs()), []), WORK_SECONDS);
    untilItWorks(Failure::class, fn () => expect('jobs left', $GLOBALS['queue']->size(), 0), WORK_SECONDS);
    $wrong = fn ($at, $name) => isset($added[$name]) && count($at) !== (str_starts_with($name, 'again') ? 2 : 1);
    expect('jobs that ran as often as they should not', array_filter(runs(), $wrong, ARRAY_FILTER_USE_BOTH), []);
}

function cache(): void
{
    global $cache, $store, $redis;
    expect('get', $cache->get('none', 'default'), 'default');
    expect('put', $cache->put('view', ['computed'], TTL), true);
    expect('get', $cache->get('view'), ['computed']);
    expectTtl($redis->connection()->ttl($store->getPrefix().'view'));
    expect('remember', $cache->remember('view', TTL, fn () => 'again'), ['computed']);
    expect('add', [$cache->add('once', 1, TTL), $cache->add('once', 2, TTL)], [true, false]);
    expect('increment', [$cache->increment('once', 4), $cache->decrement('once')], [5, 4]);
    expect('pull', [$cache->pull('once'), $cache->has('once')], ['4', false]);
    $many = [];
    for ($i = 0; $i < 100; $i++) {
        $many["many$i"] = ['number' => $i];
    }
    $cache->putMany($many, TTL);
    expect('many', $cache->many([...array_keys($many), 'none']), $many + ['none' => null]);
    expect('forget', [$cache->forget('many7'), $cache->get('many7')], [true, null]);
}

function tags(): void
{
    global $cache;
    foreach (range(1, 20) as $i) {
        $cache->tags(['people', $i % 2 ? 'odd' : 'even'])->put("person$i", $i, TTL);
    }
    expect('get', $cache->tags(['people', 'odd'])->get('person7'), '7');
    $cache->tags('odd')->flush();
    expect('odd', $cache->tags(['people', 'odd'])->get('person7'), null);
    expect('even', $cache->tags(['people', 'even'])->get('person8'), '8');
    $cache->tags('people')->flush();
    expect('even', $cache->tags(['people', 'even'])->get('person8'), null);
}

function lock(): void
{
    global $store;
    $mine = $store->lock('lock', TTL);
    $theirs = $store->lock('lock', TTL);
    expect('locks', [$mine->get(), $theirs->get()], [true, false]);
    expect('release by another', $theirs->release(), false);
    expect('release by its owner', $store->restoreLock('lock', $mine->owner())->release(), true);
    expect('lock', $theirs->block(1, fn () => 'alone'), 'alone');
    expect('lock', $mine->get(), true);
    $mine->forceRelease();
}

function limits(): void
{
    global $cache, $redis;
    $limiter = new RateLimiter($cache);
    $passed = 0;
    for ($i = 0; $i < 8; $i++) {
        $limiter->attempt('client', 5, function () use (&$passed) { $passed++; }, 3600);
    }
    expect('attempts', [$passed, $limiter->tooManyAttempts('client', 5)], [5, true]);
    $limiter->clear('client');
    expect('attempts left', $limiter->remaining('client', 5), 5);
    $passed = 0;
    for ($i = 0; $i < 8; $i++) {
        $redis->connection()->throttle('throttle')->allow(3)->every(3600)->block(0)->then(
            function () use (&$passed) { $passed++; }, fn () => null
        );
    }
    expect('passes the throttle', $passed, 3);
    $deepest = 0;
    $enter = function ($depth) use (&$enter, &$deepest, $redis) {
        $deepest = $depth;
        $redis->connection()->funnel('{funnel}')->limit(2)->releaseAfter(60)->block(0)->then(
            fn () => $enter($depth + 1), fn () => null
        );
    };
    $enter(0);
    expect('in the funnel', $deepest, 2);
    $enter(0); // they have been released
    expect('in the funnel', $deepest, 2);
}

function session(string $id = null): Session
{
    $session = new Session('laravel', new CacheBasedSessionHandler($GLOBALS['cache'], 2), $id);
    $session->start();

    return $session;
}

function sessions(): void
{
    $first = session();
    $first->put('user', 'Ada');
    $first->flash('note', 'once');
    $first->save();
    $again = session($first->getId());
    expect('session', [$again->get('user'), $again->get('note')], ['Ada', 'once']);
    $again->save();
    $third = session($first->getId());
    expect('flash', $third->get('note'), null);
    $third->migrate(true);
    $third->save();
    expect('session', [session($first->getId())->get('user'), session($third->getId())->get('user')], [null, 'Ada']);
}

function pipelines(): void
{
    $c = $GLOBALS['redis']->connection();
    $replies = $c->pipeline(function ($p) {
        for ($i = 0; $i < 500; $i++) {
            $p->set("piped$i", $i);
            $p->get("piped$i");
        }
    });
    expect('a pipeline', [count($replies), $replies[999]], [1000, '499']);
    $replies = $c->transaction(function ($t) {
        $t->incrby('{counted}', 5);
        $t->incrby('{counted}', 6);
        $t->lpush('{counted}list', 'a');
    });
    expect('a transaction', $replies, [5, 11, 1]);
    $found = 0;
    foreach (range(0, 9) as $i) {
        $found += $c->exists("piped$i");
    }
    expect('keys', $found, 10);
}

/** Jobs: at once, late, in bulk, failing, released and deleted by hand. */
function queue(): void
{
    global $queue, $added;
    $queue->push(Work::class, ['name' => 'by hand']);
    $job = $queue->pop();
    expect('payload', [$job->payload()['data'], $job->attempts()], [['name' => 'by hand'], 1]);
    $job->release();
    $job = $queue->pop();
    expect('attempts', $job->attempts(), 2);
    $job->delete();
    expect('jobs left', [$queue->size(), $queue->pop()], [0, null]); // it waits for a second
    for ($i = 0; $i < 40; $i++) {
        add("plain$i");
    }
    for ($i = 0; $i < 10; $i++) {
        add("later$i", 1);
    }
    for ($i = 0; $i < 5; $i++) {
        add("again$i");
    }
    expect('size', $queue->size(), 55);
    start('work', true);
    allRun();
}

function publish(int $i): void
{
    $GLOBALS['redis']->connection()->publish($GLOBALS['client'].':news', (string) $i);
}

function allHeard(int $n): void
{
    $heard = fn () => array_values(array_filter(array_keys(runs()), fn ($name) => preg_match('/^heard\d/', $name)));
    untilItWorks(Failure::class, fn () => expect('messages', count($heard()), $n), WORK_SECONDS);
    expect('messages', $heard(), array_map(fn ($i) => "heard$i", range(0, $n - 1)));
    $twice = array_filter(runs(), fn ($at, $name) => preg_match('/^heard\d/', $name) && count($at) > 1, ARRAY_FILTER_USE_BOTH);
    expect('heard twice', $twice, []);
}

function broadcast(): void
{
    global $listener, $redis;
    $listener = start('listen', false);
    untilItWorks(Failure::class, function () use ($redis) {
        $redis->connection()->publish($GLOBALS['client'].':new', ''); // until somebody hears it
        expect('listens', isset(runs()['heard']), true);
    }, WORK_SECONDS);
    for ($i = 0; $i < SENT; $i++) {
        publish($i);
    }
    allHeard(SENT);
}

function replace(): void
{
    global $cache, $listener;
    $limiter = new RateLimiter($cache);
    $user = session();
    $n = whileReplaced(function ($i) use ($cache, $limiter, $user) {
        $i % 4 ? add("meanwhile$i") : add("meanwhile$i", 1);
        publish(SENT + $i);
        expect('hits', $limiter->hit('many', 3600), $i + 1);
        $cache->putMany(["page$i" => $i, "view$i" => "v$i"], TTL);
        expect('get', $cache->get("view$i"), "v$i");
        $user->put('visits', $i);
        $user->save();
        $user = session($user->getId());
        expect('visits', $user->get('visits'), $i);
    });
    allRun();
    allHeard(SENT + $n);
    proc_terminate($listener, SIGKILL);
}

function crash(): void
{
    global $added, $cache;
    $before = count($added);
    $counted = []; // when each count was answered
    $killed = whileCrashed(function ($i) use (&$counted) {
        try {
            add("crash$i");
        } catch (RedisException|Predis\PredisException $e) {
            fwrite(STDERR, get_class($e).': '.$e->getMessage()."\n");
        }
        try {
            $counted[$GLOBALS['cache']->increment('crashes')][] = microtime(true);
        } catch (RedisException|Predis\PredisException $e) {
            fwrite(STDERR, get_class($e).': '.$e->getMessage()."\n");
        }
    });
    $left = fn () => array_diff_key(array_filter($added), runs());
    $early = fn () => array_filter($left(), fn ($at) => ! lastMoments($at, $killed));
    untilItWorks(Failure::class, fn () => expect('jobs lost', $early(), []), WORK_SECONDS);
    untilItWorks(Failure::class, fn () => expect('jobs left', $GLOBALS['queue']->size(), 0), WORK_SECONDS);
    $twice = array_filter(runs(), fn ($at, $name) => count($at) > 1 && str_starts_with($name, 'crash'), ARRAY_FILTER_USE_BOTH);
    unset($counted['']); // refused: phpredis answers false
    $again = array_filter($counted, fn ($at) => count($at) > 1);
    $refused = count($added) - count(array_filter($added));
    say(sprintf('count %d jobs: %d refused, %d lost, %d twice; %d counts twice',
        count($added) - $before, $refused, count($left()), count($twice), count($again)));
    expect('jobs that ran twice are few', count($twice) <= EVENTS, true);
    expect('counted twice', array_filter($again, fn ($at) => ! lastMoments($at[0], $killed)), []);
}

/** As `artisan queue:restart` does: each worker ends behind its job. */
function stop(): void
{
    unlink($GLOBALS['ledger']); // it is not started again
    $GLOBALS['cache']->forever('illuminate:queue:restart', time() + 1);
}

$version = trim(shell_exec("dpkg-query -W -f '\${Version}' php-illuminate-redis"));
say('version '.preg_replace('/[+-].*/', '', $version).', '.($client === 'predis' ? Predis\Client::VERSION : phpversion('redis')));
report('cache', 'cache');
report('tags', 'tags');
report('lock', 'lock');
report('limits', 'limits');
report('session', 'sessions');
report('pipeline', 'pipelines');
report('queue', 'queue');
report('broadcast', 'broadcast');
report('replace', 'replace');
report('crash', 'crash');
report('stop', 'stop');
