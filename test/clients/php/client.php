<?php

// The steps of ../README.md that PHP's clients go through, each in its own way.

const PIPELINED = 500; // SETs, and as many GETs
const WALKED = 300; // fields, and members
const HEARD = 20; // messages
const LONG = 10; // seconds for what is pushed
const ADD = "redis.call('HINCRBY', KEYS[1], ARGV[1], ARGV[2]) return redis.call('HVALS', KEYS[1])";

interface Client
{
    public static function version(): string;

    /** The class of what the library throws while its proxy is away. */
    public static function errors(): string;

    public function ping();

    public function cached(string $key, string $value): void;

    public function load(array $pairs): void;

    /** Has null for a key that is missing. */
    public function many(array $keys): array;

    public function delete(array $keys): int;

    public function scan(string $pattern): array;

    public function limit(string $key): void;

    public function lock(string $key, string $value): bool;

    public function deleteIfEqual(string $key, string $value): bool;

    /** Sends SET and GET of each key at once, and returns what the GETs said. */
    public function pipeline(array $keys): array;

    public function hash(string $key, string $many, array $fields): void;

    public function set(string $one, string $other, array $members): void;

    public function sortedSet(string $key): void;

    public function list(string $queue, string $done): void;

    public function geo(string $key): void;

    public function transaction(string $counter, string $log): void;

    public function script(string $key): void;

    /** Returns how many have heard it. */
    public function publish(string $channel, string $message): int;

    /** Calls heard(channel, message) for each message, until the process ends. */
    public function listen(string $channel, callable $heard): void;

    /** Calls heard(pattern, channel, message). */
    public function listenToPattern(string $pattern, callable $heard): void;

    /**
     * Pops an empty list until the time is up, and then what another process pushes. pushed(push) has that call
     * push(client) as soon as this one is blocked.
     */
    public function waiting(string $none, string $queue, string $done, string $board, callable $pushed): void;

    /** Returns how many clients are blocked. */
    public function blocked(): int;

    public function push(string $key, array $items): void;

    public function rank(string $key, float $score, string $member): void;

    public function again(string $key): void;
}

/** Expects the same elements, in any order. */
function expectSame(string $what, array $got, array $want): void
{
    $ordered = function (array $list): array {
        is_int(array_key_first($list)) ? sort($list) : ksort($list);

        return $list;
    };
    expect($what, $ordered($got), $ordered($want));
}

function keys(string $prefix, string $name, int $count): array
{
    return array_map(fn ($i) => "$prefix:$name$i", range(0, $count - 1));
}

function valuesOf(array $keys): array
{
    return array_combine($keys, array_map(fn ($key) => "value of $key", $keys));
}

/**
 * Runs listen(heard) in a process of its own, and returns the stream of what it hears, by lines. Its
 * end ends nothing that it shares with this process.
 */
function ear(callable $listen): mixed
{
    [$here, $there] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
    if (pcntl_fork() === 0) {
        $end = fn () => posix_kill(posix_getpid(), SIGKILL);
        try {
            $listen(function (...$words) use ($there, $end) {
                fwrite($there, implode(' ', $words)."\n");
                end($words) === 'last' && $end();
            });
        } finally {
            $end();
        }
    }
    fclose($there);
    stream_set_timeout($here, WORK_SECONDS);

    return $here;
}

/** Two processes listen, to a channel and to a pattern, and hear each message once and in order. */
function published(Client $client, callable $connect, string $channel): void
{
    $pattern = substr($channel, 0, -1).'*';
    $ears = [
        $channel => ear(fn ($heard) => $connect()->listen($channel, $heard)),
        "$pattern $channel" => ear(fn ($heard) => $connect()->listenToPattern($pattern, $heard)),
    ];
    untilItWorks(Failure::class, function () use ($client, $channel, $ears) {
        $client->publish($channel, 'ready'); // until both hear it
        [$read, $none] = [$ears, null];
        expect('listeners', stream_select($read, $none, $none, 0), 2);
    }, WORK_SECONDS);
    $sent = [...array_map('strval', range(0, HEARD - 1)), 'last'];
    foreach ($sent as $message) {
        expect('PUBLISH', $client->publish($channel, $message), 2);
    }
    foreach ($ears as $words => $ear) {
        $heard = [];
        while (($line = fgets($ear)) !== false) {
            $heard[] = trim($line);
        }
        $want = array_map(fn ($message) => "$words $message", $sent);
        expect('messages', array_values(array_diff($heard, ["$words ready"])), $want);
    }
}

/** Has a process of its own push, with a connection of its own, as soon as this one is blocked. */
function pushed(callable $connect, callable $push): void
{
    ear(function () use ($connect, $push) {
        $client = $connect();
        untilItWorks(Failure::class, fn () => expect('blocked', $client->blocked(), 1), LONG);
        $push($client);
    });
}

/** Goes through all steps. */
function run(string $prefix, callable $connectTo, string $class): void
{
    [$host, $port] = explode(':', $GLOBALS['argv'][1]);
    $connect = fn () => $connectTo($host, (int) $port);
    say('version '.$class::version());
    $client = $connect();
    $key = fn ($name) => "$prefix:$name";
    $piped = function () use ($client, $prefix) {
        $keys = keys($prefix, 'piped', PIPELINED);
        expect('a pipeline', $client->pipeline($keys), $keys);
    };
    report('connect', fn () => expect('PING', $client->ping(), true));
    report('get-or-set', fn () => $client->cached($key('cached'), "computed\r\n\0"));
    report('many', function () use ($client, $prefix) {
        $pairs = valuesOf(keys($prefix, 'many', 100));
        $client->load($pairs);
        expect('MGET', $client->many(["$prefix:missing", ...array_keys($pairs)]), [null, ...array_values($pairs)]);
    });
    report('delete', fn () => expect('DEL', $client->delete(["$prefix:missing", ...keys($prefix, 'many', 100)]), 100));
    report('scan', function () use ($client, $prefix) {
        [$gone, $kept] = [keys($prefix, 'scanned:', 300), keys($prefix, 'kept:', 10)];
        $client->load(valuesOf([...$gone, ...$kept]));
        $found = array_unique($client->scan("$prefix:scanned:*"));
        expectSame('SCAN', $found, $gone);
        expect('DEL', $client->delete(array_values($found)), 300);
        expectSame('SCAN of what was kept', array_unique($client->scan("$prefix:kept:*")), $kept);
    });
    report('rate-limit', fn () => $client->limit($key('limited')));
    report('lock', function () use ($client, $key) {
        expect('SET NX', $client->lock($key('lock'), 'mine'), true);
        expect('the second SET NX', $client->lock($key('lock'), 'theirs'), false);
        expect('compare and delete by another', $client->deleteIfEqual($key('lock'), 'theirs'), false);
        expect('compare and delete', $client->deleteIfEqual($key('lock'), 'mine'), true);
        expect('SET NX of the released lock', $client->lock($key('lock'), 'again'), true);
    });
    report('pipeline', $piped);
    $fields = array_combine(array_map(fn ($i) => "field$i", range(0, WALKED - 1)), range(0, WALKED - 1));
    report('hash', fn () => $client->hash($key('hash'), $key('fields'), $fields));
    report('set', fn () => $client->set($key('{set}:1'), $key('{set}:2'), keys($prefix, 'member', WALKED)));
    report('sorted-set', fn () => $client->sortedSet($key('board')));
    report('list', fn () => $client->list($key('{list}:queue'), $key('{list}:done')));
    report('geo', fn () => $client->geo($key('towns')));
    report('transaction', fn () => $client->transaction($key('{t}:n'), $key('{t}:log')));
    report('script', fn () => $client->script($key('scripted')));
    report('publish', fn () => published($client, $connect, $key('news')));
    report('blocking', fn () => $client->waiting(
        $key('none'), $key('{wait}:queue'), $key('{wait}:done'), $key('waited'), fn ($push) => pushed($connect, $push)
    ));
    report('reconnect', function () use ($client, $class, $key, $piped) {
        say('restart');
        fgets(STDIN);
        untilItWorks($class::errors(), fn () => $client->again($key('cached')));
        $piped();
    });
}
