<?php

// phpredis, PHP's client that is an extension: php phpredis.php HOST:PORT

require __DIR__.'/scenario.php';
require __DIR__.'/client.php';

final class PhpRedisClient implements Client
{
    private Redis $redis;

    public function __construct(private string $host, private int $port)
    {
        $this->redis = $this->connected();
    }

    private function connected(): Redis
    {
        $redis = new Redis;
        $redis->connect($this->host, $this->port);
        $redis->setOption(Redis::OPT_SCAN, Redis::SCAN_RETRY);

        return $redis;
    }

    public static function version(): string
    {
        return phpversion('redis');
    }

    public static function errors(): string
    {
        return RedisException::class;
    }

    public function ping()
    {
        return $this->redis->ping();
    }

    public function cached(string $key, string $value): void
    {
        expect('GET of a missing key', $this->redis->get($key), false);
        expect('SETEX', $this->redis->setex($key, TTL, $value), true);
        expect('GET', $this->redis->get($key), $value);
        expectTtl($this->redis->ttl($key));
    }

    public function load(array $pairs): void
    {
        expect('MSET', $this->redis->mset($pairs), true);
    }

    public function many(array $keys): array
    {
        return array_map(fn ($value) => $value === false ? null : $value, $this->redis->mget($keys));
    }

    public function delete(array $keys): int
    {
        return $this->redis->del($keys);
    }

    public function scan(string $pattern): array
    {
        [$cursor, $found] = [null, []];
        while ($keys = $this->redis->scan($cursor, $pattern)) {
            array_push($found, ...$keys);
        }

        return $found;
    }

    public function limit(string $key): void
    {
        for ($i = 1; $i <= 5; $i++) {
            expect('INCR', $this->redis->incr($key), $i);
            $i > 1 || expect('EXPIRE', $this->redis->expire($key, TTL), true);
        }
        expectTtl($this->redis->ttl($key));
    }

    public function lock(string $key, string $value): bool
    {
        return $this->redis->set($key, $value, ['nx', 'ex' => TTL]);
    }

    public function deleteIfEqual(string $key, string $value): bool
    {
        $this->redis->watch($key);
        if ($this->redis->get($key) !== $value) {
            $this->redis->unwatch();

            return false;
        }

        return $this->redis->multi()->del($key)->exec() === [1];
    }

    public function pipeline(array $keys): array
    {
        $pipe = $this->redis->multi(Redis::PIPELINE);
        foreach ($keys as $key) {
            $pipe->set($key, $key)->get($key);
        }

        return array_values(array_filter($pipe->exec(), 'is_string'));
    }

    public function hash(string $key, string $many, array $fields): void
    {
        expect('HMSET', $this->redis->hMSet($key, ['name' => 'Ada', 'visits' => 41]), true);
        expect('HINCRBY', $this->redis->hIncrBy($key, 'visits', 1), 42);
        expect('HGETALL', $this->redis->hGetAll($key), ['name' => 'Ada', 'visits' => '42']);
        expect('HMGET', $this->redis->hMGet($key, ['name', 'none']), ['name' => 'Ada', 'none' => false]);
        expect('HEXPIRE', $this->redis->rawCommand('HEXPIRE', $key, TTL, 'FIELDS', 1, 'visits'), [1]);
        expect('HDEL', $this->redis->hDel($key, 'name', 'none'), 1);
        expect('HMSET', $this->redis->hMSet($many, $fields), true);
        [$cursor, $found] = [null, []];
        while ($some = $this->redis->hScan($many, $cursor)) {
            $found += $some;
        }
        expectSame('HSCAN', array_map('intval', $found), $fields);
    }

    public function set(string $one, string $other, array $members): void
    {
        expect('SADD', $this->redis->sAdd($one, ...$members), count($members));
        expect('SADD', $this->redis->sAddArray($other, [$members[1], $members[2], 'else']), 3);
        expect('SISMEMBER', $this->redis->sIsMember($other, 'else'), true);
        expectSame('SINTER', $this->redis->sInter($one, $other), [$members[1], $members[2]]);
        expect('SREM', $this->redis->sRem($other, 'else'), 1);
        expectSame('SMEMBERS', $this->redis->sMembers($other), [$members[1], $members[2]]);
        [$cursor, $found] = [null, []];
        while ($some = $this->redis->sScan($one, $cursor)) {
            array_push($found, ...$some);
        }
        expectSame('SSCAN', array_unique($found), $members);
    }

    public function sortedSet(string $key): void
    {
        expect('ZADD', $this->redis->zAdd($key, 1, 'Ada', 2.5, 'Bob', 3, 'Cy'), 3);
        expect('ZINCRBY', $this->redis->zIncrBy($key, 2, 'Ada'), 3.0);
        expect('ZREVRANGE', $this->redis->zRevRange($key, 0, 1, true), ['Cy' => 3.0, 'Ada' => 3.0]);
        expect('ZRANK', $this->redis->zRank($key, 'Bob'), 0);
        expect('ZRANGEBYSCORE', $this->redis->zRangeByScore($key, 2, '(3'), ['Bob']);
        expect('ZPOPMIN', $this->redis->zPopMin($key), ['Bob' => 2.5]);
    }

    public function list(string $queue, string $done): void
    {
        expect('RPUSH', $this->redis->rPush($queue, 'a', 'b', 'c', 'd'), 4);
        expect('RPOPLPUSH', $this->redis->rPopLPush($queue, $done), 'd');
        expect('BLPOP', $this->redis->blPop([$queue], 1), [$queue, 'a']);
        expect('LRANGE', $this->redis->lRange($queue, 0, -1), ['b', 'c']);
        expect('LTRIM', $this->redis->lTrim($queue, 0, 0), true);
        expect('LLEN', $this->redis->lLen($queue), 1);
    }

    public function geo(string $key): void
    {
        expect('GEOADD', $this->redis->geoAdd($key, 13.361389, 38.115556, 'Palermo', 15.087269, 37.502669, 'Catania'), 2);
        expect('GEODIST', round($this->redis->geoDist($key, 'Palermo', 'Catania', 'km')), 166.0);
        expect('GEORADIUS', $this->redis->geoRadius($key, 15, 37, 200, 'km', ['ASC']), ['Catania', 'Palermo']);
    }

    public function transaction(string $counter, string $log): void
    {
        $got = $this->redis->multi()->incrBy($counter, 5)->rPush($log, 'a', 'b')->lRange($log, 0, -1)->exec();
        expect('MULTI', $got, [5, 2, ['a', 'b']]);
        $this->redis->watch($counter);
        $this->connected()->incr($counter);
        expect('EXEC', $this->redis->multi()->set($counter, 'overwritten')->exec(), false);
        expect('GET', $this->redis->get($counter), '6');
    }

    public function script(string $key): void
    {
        expect('EVAL', $this->redis->eval(ADD, [$key, 'n', 5], 1), ['5']);
        $sha = $this->redis->script('load', ADD);
        expect('EVALSHA', $this->redis->evalSha($sha, [$key, 'n', 6], 1), ['11']);
        expect('EXISTS', $this->redis->script('exists', $sha), [1]);
        expect('INCR of a hash', $this->redis->eval("return redis.call('INCR', KEYS[1])", [$key], 1), false);
        expect('its error', str_contains($this->redis->getLastError(), 'WRONGTYPE'), true);
        $this->redis->clearLastError();
    }

    public function publish(string $channel, string $message): int
    {
        return $this->redis->publish($channel, $message);
    }

    public function listen(string $channel, callable $heard): void
    {
        $redis = $this->connected();
        $redis->setOption(Redis::OPT_READ_TIMEOUT, WORK_SECONDS);
        $redis->subscribe([$channel], fn ($redis, $channel, $message) => $heard($channel, $message));
    }

    public function listenToPattern(string $pattern, callable $heard): void
    {
        $redis = $this->connected();
        $redis->setOption(Redis::OPT_READ_TIMEOUT, WORK_SECONDS);
        $redis->psubscribe([$pattern], fn ($redis, ...$words) => $heard(...$words));
    }

    public function waiting(string $none, string $queue, string $done, string $board, callable $pushed): void
    {
        $begin = microtime(true);
        expect('BLPOP of an empty list', $this->redis->blPop([$none], 1), []); // this version knows whole seconds
        expect('its time is up', microtime(true) - $begin >= 1, true);
        $pushed(fn ($client) => $client->push($queue, ['a']));
        expect('BLPOP', $this->redis->blPop([$none, $queue], LONG), [$queue, 'a']);
        $pushed(fn ($client) => $client->push($queue, ['b', 'c']));
        expect('BRPOPLPUSH', $this->redis->bRPopLPush($queue, $done, LONG), 'c');
        expect('the source', $this->redis->lRange($queue, 0, -1), ['b']);
        expect('the target', $this->redis->lRange($done, 0, -1), ['c']);
        $pushed(fn ($client) => $client->rank($board, 1.5, 'Ada'));
        expect('BZPOPMIN', $this->redis->bzPopMin([$board], LONG), [$board, 'Ada', '1.5']);
    }

    public function blocked(): int
    {
        return (int) $this->redis->info('clients')['blocked_clients'];
    }

    public function push(string $key, array $items): void
    {
        $this->redis->rpush($key, ...$items);
    }

    public function rank(string $key, float $score, string $member): void
    {
        $this->redis->zadd($key, $score, $member);
    }

    public function again(string $key): void
    {
        expect('SET', $this->redis->set($key, 'again'), true);
        expect('GET', $this->redis->get($key), 'again');
    }
}

run('phpredis', fn ($host, $port) => new PhpRedisClient($host, $port), PhpRedisClient::class);
