<?php

// predis, PHP's client in PHP: php predis.php HOST:PORT

require __DIR__.'/scenario.php';
require __DIR__.'/client.php';
require 'Predis/autoload.php';

use Predis\Collection\Iterator;

/** A script as a command of the client, which sends its digest first. */
final class Add extends Predis\Command\ScriptCommand
{
    public function getKeysCount()
    {
        return 1;
    }

    public function getScript()
    {
        return ADD;
    }
}

final class PredisClient implements Client
{
    private Predis\Client $redis;

    public function __construct(private string $host, private int $port)
    {
        $this->redis = $this->connected();
        $this->redis->getProfile()->defineCommand('add', Add::class);
    }

    private function connected(array $more = []): Predis\Client
    {
        return new Predis\Client(['host' => $this->host, 'port' => $this->port] + $more);
    }

    public static function version(): string
    {
        return Predis\Client::VERSION;
    }

    public static function errors(): string
    {
        return Predis\PredisException::class;
    }

    public function ping()
    {
        return (string) $this->redis->ping() === 'PONG';
    }

    public function cached(string $key, string $value): void
    {
        expect('GET of a missing key', $this->redis->get($key), null);
        expect('SETEX', (string) $this->redis->setex($key, TTL, $value), 'OK');
        expect('GET', $this->redis->get($key), $value);
        expectTtl($this->redis->ttl($key));
    }

    public function load(array $pairs): void
    {
        expect('MSET', (string) $this->redis->mset($pairs), 'OK');
    }

    public function many(array $keys): array
    {
        return $this->redis->mget($keys);
    }

    public function delete(array $keys): int
    {
        return $this->redis->del($keys);
    }

    public function scan(string $pattern): array
    {
        return iterator_to_array(new Iterator\Keyspace($this->redis, $pattern), false);
    }

    public function limit(string $key): void
    {
        for ($i = 1; $i <= 5; $i++) {
            expect('INCR', $this->redis->incr($key), $i);
            $i > 1 || expect('EXPIRE', $this->redis->expire($key, TTL), 1);
        }
        expectTtl($this->redis->ttl($key));
    }

    public function lock(string $key, string $value): bool
    {
        return $this->redis->set($key, $value, 'EX', TTL, 'NX') !== null;
    }

    public function deleteIfEqual(string $key, string $value): bool
    {
        $replies = $this->redis->transaction(['cas' => true, 'watch' => $key], function ($t) use ($key, $value) {
            if ($t->get($key) === $value) {
                $t->multi();
                $t->del($key);
            }
        });

        return $replies === [1];
    }

    public function pipeline(array $keys): array
    {
        $replies = $this->redis->pipeline(function ($pipe) use ($keys) {
            foreach ($keys as $key) {
                $pipe->set($key, $key);
                $pipe->get($key);
            }
        });

        return array_values(array_filter($replies, 'is_string'));
    }

    public function hash(string $key, string $many, array $fields): void
    {
        expect('HMSET', (string) $this->redis->hmset($key, ['name' => 'Ada', 'visits' => 41]), 'OK');
        expect('HINCRBY', $this->redis->hincrby($key, 'visits', 1), 42);
        expect('HGETALL', $this->redis->hgetall($key), ['name' => 'Ada', 'visits' => '42']);
        expect('HMGET', $this->redis->hmget($key, ['name', 'none']), ['Ada', null]);
        expect('HEXPIRE', $this->redis->executeRaw(['HEXPIRE', $key, TTL, 'FIELDS', 1, 'visits']), [1]);
        expect('HDEL', $this->redis->hdel($key, ['name', 'none']), 1);
        expect('HMSET', (string) $this->redis->hmset($many, $fields), 'OK');
        $found = iterator_to_array(new Iterator\HashKey($this->redis, $many));
        expectSame('HSCAN', array_map('intval', $found), $fields);
    }

    public function set(string $one, string $other, array $members): void
    {
        expect('SADD', $this->redis->sadd($one, $members), count($members));
        expect('SADD', $this->redis->sadd($other, [$members[1], $members[2], 'else']), 3);
        expect('SISMEMBER', $this->redis->sismember($other, 'else'), 1);
        expectSame('SINTER', $this->redis->sinter([$one, $other]), [$members[1], $members[2]]);
        expect('SREM', $this->redis->srem($other, 'else'), 1);
        expectSame('SMEMBERS', $this->redis->smembers($other), [$members[1], $members[2]]);
        $found = iterator_to_array(new Iterator\SetKey($this->redis, $one), false);
        expectSame('SSCAN', array_unique($found), $members);
    }

    public function sortedSet(string $key): void
    {
        expect('ZADD', $this->redis->zadd($key, ['Ada' => 1, 'Bob' => 2.5, 'Cy' => 3]), 3);
        expect('ZINCRBY', $this->redis->zincrby($key, 2, 'Ada'), '3');
        $best = $this->redis->zrevrange($key, 0, 1, ['withscores' => true]);
        expect('ZREVRANGE', $best, ['Cy' => '3', 'Ada' => '3']);
        expect('ZRANK', $this->redis->zrank($key, 'Bob'), 0);
        expect('ZRANGEBYSCORE', $this->redis->zrangebyscore($key, 2, '(3'), ['Bob']);
        $found = iterator_to_array(new Iterator\SortedSetKey($this->redis, $key));
        expectSame('ZSCAN', array_keys($found), ['Ada', 'Bob', 'Cy']);
    }

    public function list(string $queue, string $done): void
    {
        expect('RPUSH', $this->redis->rpush($queue, ['a', 'b', 'c', 'd']), 4);
        expect('RPOPLPUSH', $this->redis->rpoplpush($queue, $done), 'd');
        expect('BLPOP', $this->redis->blpop([$queue], 1), [$queue, 'a']);
        expect('LRANGE', iterator_to_array(new Predis\Collection\Iterator\ListKey($this->redis, $queue)), ['b', 'c']);
        expect('LTRIM', (string) $this->redis->ltrim($queue, 0, 0), 'OK');
        expect('LLEN', $this->redis->llen($queue), 1);
    }

    public function geo(string $key): void
    {
        expect('GEOADD', $this->redis->geoadd($key, 13.361389, 38.115556, 'Palermo', 15.087269, 37.502669, 'Catania'), 2);
        expect('GEODIST', round((float) $this->redis->geodist($key, 'Palermo', 'Catania', 'km')), 166.0);
        expect('GEORADIUS', $this->redis->georadius($key, 15, 37, 200, 'km', ['SORT' => 'ASC']), ['Catania', 'Palermo']);
    }

    public function transaction(string $counter, string $log): void
    {
        $got = $this->redis->transaction(function ($t) use ($counter, $log) {
            $t->incrby($counter, 5);
            $t->rpush($log, ['a', 'b']);
            $t->lrange($log, 0, -1);
        });
        expect('MULTI', $got, [5, 2, ['a', 'b']]);
        $other = $this->connected();
        try {
            $this->redis->transaction(['cas' => true, 'watch' => $counter], function ($t) use ($other, $counter) {
                $read = $t->get($counter); // with the first command it watches
                $other->incr($counter);
                $t->multi();
                $t->set($counter, $read * 2);
            });
            throw new Failure("a transaction behind another's change is executed");
        } catch (Predis\Transaction\AbortedMultiExecException) {
            expect('GET', $this->redis->get($counter), '6');
        }
    }

    public function script(string $key): void
    {
        expect('EVAL', $this->redis->eval(ADD, 1, $key, 'n', 5), ['5']);
        expect('a script that is a command', $this->redis->add($key, 'n', 6), ['11']);
        $sha = $this->redis->script('load', ADD);
        expect('EVALSHA', $this->redis->evalsha($sha, 1, $key, 'n', 1), ['12']);
        try {
            $this->redis->eval("return redis.call('INCR', KEYS[1])", 1, $key);
            throw new Failure('INCR of a hash succeeds');
        } catch (Predis\Response\ServerException $e) {
            expect('its error', str_contains($e->getMessage(), 'WRONGTYPE'), true);
        }
    }

    public function publish(string $channel, string $message): int
    {
        return $this->redis->publish($channel, $message);
    }

    public function listen(string $channel, callable $heard): void
    {
        $this->hear(['subscribe' => $channel], $heard);
    }

    public function listenToPattern(string $pattern, callable $heard): void
    {
        $this->hear(['psubscribe' => $pattern], $heard);
    }

    private function hear(array $what, callable $heard): void
    {
        foreach ($this->connected(['read_write_timeout' => WORK_SECONDS])->pubSubLoop($what) as $event) {
            if ($event->kind === 'message') {
                $heard($event->channel, $event->payload);
            } elseif ($event->kind === 'pmessage') {
                $heard($event->pattern, $event->channel, $event->payload);
            }
        }
    }

    /** This version has no command that waits at a sorted set. */
    public function waiting(string $none, string $queue, string $done, string $board, callable $pushed): void
    {
        $begin = microtime(true);
        expect('BLPOP of an empty list', $this->redis->blpop([$none], 0.1), null);
        expect('its time is up', microtime(true) - $begin >= 0.1, true);
        $pushed(fn ($client) => $client->push($queue, ['a']));
        expect('BLPOP', $this->redis->blpop([$none, $queue], LONG), [$queue, 'a']);
        $pushed(fn ($client) => $client->push($queue, ['b', 'c']));
        expect('BRPOPLPUSH', $this->redis->brpoplpush($queue, $done, LONG), 'c');
        expect('the source', $this->redis->lrange($queue, 0, -1), ['b']);
        expect('the target', $this->redis->lrange($done, 0, -1), ['c']);
    }

    public function blocked(): int
    {
        return (int) $this->redis->info('clients')['Clients']['blocked_clients'];
    }

    public function push(string $key, array $items): void
    {
        $this->redis->rpush($key, $items);
    }

    public function rank(string $key, float $score, string $member): void
    {
        $this->redis->zadd($key, [$member => $score]);
    }

    public function again(string $key): void
    {
        expect('SET', (string) $this->redis->set($key, 'again'), 'OK');
        expect('GET', $this->redis->get($key), 'again');
    }
}

run('predis', fn ($host, $port) => new PredisClient($host, $port), PredisClient::class);
