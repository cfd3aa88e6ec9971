<?php

// The result protocol of ../README.md, for all programs here.

error_reporting(E_ALL & ~E_DEPRECATED); // the libraries are older than this PHP

const TTL = 100;
const RECONNECT_SECONDS = 20;
const WORK_SECONDS = 60; // for what workers do that start first, on a busy machine

// Seconds before a node's death, and behind it until nobody takes it for alive, from which anything may be missing that
// it has acknowledged.
const LAST_MOMENTS = 1;
const BEHIND = 0.25;

/** A step's reply was not the one expected. */
class Failure extends Exception {}

function say(string $line): void
{
    fwrite(STDOUT, str_replace("\n", ' ', $line)."\n");
}

function expect(string $what, $got, $want): void
{
    if ($got !== $want) {
        throw new Failure(sprintf('%s gives %.200s, want %.200s', $what, json_encode($got), json_encode($want)));
    }
}

function expectTtl(int $got): void
{
    expect('a TTL', $got > 0 && $got <= TTL, true);
}

/** Runs one step and prints its line. */
function report(string $step, callable $run): void
{
    try {
        $run();
        say("ok $step");
    } catch (Throwable $e) { // whatever a library throws, the step has failed
        say("FAIL $step: ".get_class($e).': '.$e->getMessage().' at '.basename($e->getFile()).':'.$e->getLine());
    }
}

/** Repeats an attempt while it throws errors of a class, which a library may do until the proxy is back. */
function untilItWorks(string $class, callable $attempt, int $seconds = RECONNECT_SECONDS)
{
    for ($deadline = microtime(true) + $seconds;; usleep(20000)) {
        try {
            return $attempt();
        } catch (Throwable $e) {
            if (! $e instanceof $class || microtime(true) > $deadline) {
                throw $e;
            }
        }
    }
}

/** Has the driver do what word says, and repeats work(i) until it has done so. Returns how often, and its last words. */
function whileDriver(string $word, callable $work, int $pauseMillis): array
{
    say($word);
    fgets(STDIN); // it begins
    for ($i = 0;;) {
        $work($i++);
        [$read, $none] = [[STDIN], null];
        if (stream_select($read, $none, $none, 0, $pauseMillis * 1000)) {
            return [$i, fgets(STDIN)];
        }
    }
}

/** Has the driver replace the cluster's nodes meanwhile. Returns how often work was called. */
function whileReplaced(callable $work, int $pauseMillis = 10): int
{
    return whileDriver('replace', $work, $pauseMillis)[0];
}

/** Has the driver kill a node, start another one and restart the proxies. Returns when the node was killed. */
function whileCrashed(callable $work, int $pauseMillis = 10): float
{
    return (float) whileDriver('crash', $work, $pauseMillis)[1];
}

/** Reports whether a moment is one of the last of a node that was killed then. */
function lastMoments(float $at, float $killed): bool
{
    return $at > $killed - LAST_MOMENTS && $at < $killed + BEHIND;
}
