//! Runs the scenario of ../README.md with redis-rs: clients HOST:PORT

use std::collections::{HashMap, HashSet};
use std::error::Error;
use std::io;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use redis::caching::CacheConfig;
use redis::geo::{Coord, RadiusOptions, RadiusOrder, RadiusSearchResult, Unit};
use redis::{
    AsyncCommands, AsyncConnectionConfig, Commands, Connection, Direction, ExistenceCheck, ExpireOption, PubSub,
    RedisResult, SetExpiry, SetOptions,
};

type Outcome = Result<(), Box<dyn Error>>;

const TTL: u64 = 100;
const PIPELINED: usize = 500; // SETs, and as many GETs
const WALKED: usize = 300; // fields, and members
const SENT: usize = 20; // messages
const HEARD: Duration = Duration::from_secs(10);
const SHORTLY: f64 = 0.1; // seconds until a pop of an empty list gives up
const LONG: f64 = 10.0; // seconds for what is pushed
const RECONNECT: Duration = Duration::from_secs(20);
const VALUE: &str = "computed\r\n\0";

fn main() {
    let addr = std::env::args().nth(1).expect("usage: clients HOST:PORT");
    println!("version {}", version());
    let client = redis::Client::open(format!("redis://{addr}")).expect("an address");
    let mut c = match client.get_connection() {
        Ok(c) => c,
        Err(e) => return println!("FAIL connect: {e}"),
    };
    report("connect", expect("PING", c.ping::<String>(), "PONG".into()));
    report("get-or-set", get_or_set(&mut c));
    report("many", many(&mut c));
    report("delete", delete(&mut c));
    report("scan", scan_and_delete(&mut c));
    report("rate-limit", rate_limit(&mut c));
    report("lock", lock(&mut c));
    report("pipeline", pipeline(&mut c));
    report("hash", hash(&mut c));
    report("set", set(&mut c));
    report("sorted-set", sorted_set(&mut c));
    report("list", list(&mut c));
    report("geo", geo(&mut c));
    report("publish", publish(&client, &mut c));
    report("blocking", blocking(&client, &mut c));
    report("tracking", tracking(&addr, &mut c));
    report("reconnect", reconnect(&client, &mut c));
}

/// The crate does not tell its own version; Cargo.toml has it exactly.
fn version() -> &'static str {
    let line = include_str!("../Cargo.toml")
        .lines()
        .find(|l| l.starts_with("redis ="));
    line.and_then(|l| l.split('"').nth(1))
        .unwrap_or("unknown")
        .trim_start_matches('=')
}

fn report(step: &str, outcome: Outcome) {
    match outcome {
        Ok(()) => println!("ok {step}"),
        Err(e) => println!("FAIL {step}: {e}"),
    }
}

fn expect<T: PartialEq + std::fmt::Debug>(what: &str, got: RedisResult<T>, want: T) -> Outcome {
    match got? {
        got if got == want => Ok(()),
        got => Err(format!("{what} gives {got:?}, want {want:?}").into()),
    }
}

fn expect_ttl(got: RedisResult<i64>) -> Outcome {
    match got? {
        1..=100 => Ok(()),
        other => Err(format!("TTL is {other}").into()),
    }
}

fn key(name: &str) -> String {
    format!("redis-rs:{name}")
}

fn keys(name: &str, n: usize) -> Vec<String> {
    (0..n).map(|i| key(&format!("{name}{i}"))).collect()
}

fn value_of(key: &str) -> String {
    format!("value of {key}")
}

fn load(c: &mut Connection, keys: &[String]) -> Outcome {
    let pairs: Vec<_> = keys.iter().map(|k| (k, value_of(k))).collect();
    expect("MSET", c.mset(&pairs), "OK".to_string())
}

fn get_or_set(c: &mut Connection) -> Outcome {
    let key = key("cached");
    expect("GET of a missing key", c.get(&key), None::<String>)?;
    expect("SETEX", c.set_ex(&key, VALUE, TTL), "OK".to_string())?;
    expect("GET", c.get(&key), VALUE.to_string())?;
    expect_ttl(c.ttl(&key))
}

fn many(c: &mut Connection) -> Outcome {
    let mut asked = keys("many", 100);
    load(c, &asked)?;
    let mut want: Vec<Option<String>> = asked.iter().map(|k| Some(value_of(k))).collect();
    asked.push(key("missing"));
    want.push(None);
    expect("MGET", c.mget(&asked), want)
}

fn delete(c: &mut Connection) -> Outcome {
    let mut keys = keys("many", 100);
    keys.push(key("missing"));
    expect("DEL", c.del(&keys), 100)
}

fn scan(c: &mut Connection, pattern: &str) -> RedisResult<HashSet<String>> {
    c.scan_match(key(pattern))?.collect()
}

fn scan_and_delete(c: &mut Connection) -> Outcome {
    let (gone, kept) = (keys("scanned:", 300), keys("kept:", 10));
    load(c, &gone)?;
    load(c, &kept)?;
    expect("SCAN", scan(c, "scanned:*"), gone.iter().cloned().collect())?;
    expect("DEL", c.del(&gone), 300)?;
    expect(
        "SCAN of what was kept",
        scan(c, "kept:*"),
        kept.into_iter().collect(),
    )
}

fn rate_limit(c: &mut Connection) -> Outcome {
    let key = key("limited");
    for i in 1..=5 {
        expect("INCR", c.incr(&key, 1), i)?;
        if i == 1 {
            expect("EXPIRE", c.expire(&key, TTL as i64), true)?;
        }
    }
    expect_ttl(c.ttl(&key))
}

fn lock(c: &mut Connection) -> Outcome {
    let key = key("lock");
    let absent = SetOptions::default()
        .conditional_set(ExistenceCheck::NX)
        .with_expiration(SetExpiry::EX(TTL));
    expect(
        "SET NX",
        c.set_options(&key, "mine", absent.clone()),
        Some("OK".to_string()),
    )?;
    expect(
        "the second SET NX",
        c.set_options(&key, "theirs", absent),
        None::<String>,
    )?;
    expect(
        "compare and delete by another",
        delete_if_equal(c, &key, "theirs"),
        false,
    )?;
    expect("compare and delete", delete_if_equal(c, &key, "mine"), true)?;
    expect("GET of the released lock", c.get(&key), None::<String>)
}

fn delete_if_equal(c: &mut Connection, key: &str, value: &str) -> RedisResult<bool> {
    redis::transaction(c, &[key], |c, transaction| {
        if c.get::<_, Option<String>>(key)?.as_deref() != Some(value) {
            return Ok(Some(false));
        }
        let deleted: Option<(i64,)> = transaction.del(key).query(c)?;
        Ok(deleted.map(|(n,)| n == 1)) // None has it tried again
    })
}

fn pipeline(c: &mut Connection) -> Outcome {
    let keys = keys("piped", PIPELINED);
    let mut p = redis::pipe();
    for k in &keys {
        p.set(k, k).ignore().get(k);
    }
    expect("a pipeline", p.query(c), keys) // each key holds its own name
}

fn hash(c: &mut Connection) -> Outcome {
    let (hash, many) = (key("hash"), key("fields"));
    let fields = [("name", "Ada"), ("visits", "41")];
    expect("HSET", c.hset_multiple(&hash, &fields), "OK".to_string())?;
    expect("HINCRBY", c.hincr(&hash, "visits", 1), 42)?;
    let want = HashMap::from([("name", "Ada"), ("visits", "42")].map(|(f, v)| (f.into(), v.into())));
    expect("HGETALL", c.hgetall(&hash), want as HashMap<String, String>)?;
    expect("HEXPIRE", c.hexpire(&hash, TTL as i64, ExpireOption::NONE, "visits"), vec![1])?;
    expect("HDEL", c.hdel(&hash, "name"), 1)?;
    let all: Vec<_> = (0..WALKED).map(|i| (format!("field{i}"), i.to_string())).collect();
    expect("HSET", c.hset_multiple(&many, &all), "OK".to_string())?;
    let found = c.hscan(&many)?.collect::<RedisResult<HashMap<String, String>>>();
    expect("HSCAN", found, all.into_iter().collect())
}

fn set(c: &mut Connection) -> Outcome {
    let (one, other) = (key("{set}:1"), key("{set}:2"));
    let members = keys("member", WALKED);
    expect("SADD", c.sadd(&one, &members), WALKED)?;
    expect("SADD", c.sadd(&other, &[&members[1], &members[2], "else"]), 3)?;
    let both: HashSet<String> = members[1..3].iter().cloned().collect();
    expect("SINTER", c.sinter(&[&one, &other]), both)?;
    expect("SREM", c.srem(&other, "else"), 1)?;
    let found = c.sscan(&one)?.collect::<RedisResult<HashSet<String>>>();
    expect("SSCAN", found, members.into_iter().collect())
}

fn sorted_set(c: &mut Connection) -> Outcome {
    let board = key("board");
    expect("ZADD", c.zadd_multiple(&board, &[(1.0, "Ada"), (2.5, "Bob"), (3.0, "Cy")]), 3)?;
    expect("ZINCRBY", c.zincr(&board, "Ada", 2), 3.0)?;
    let best = [("Cy", 3.0), ("Ada", 3.0), ("Bob", 2.5)].map(|(m, s)| (m.to_string(), s));
    expect("ZREVRANGE", c.zrevrange_withscores(&board, 0, 2), best.to_vec())?;
    expect("ZPOPMIN", c.zpopmin(&board, 1), best[2..].to_vec())
}

fn list(c: &mut Connection) -> Outcome {
    let (queue, done) = (key("{list}:queue"), key("{list}:done"));
    expect("RPUSH", c.rpush(&queue, &["a", "b", "c"]), 3)?;
    let moved = c.lmove(&queue, &done, Direction::Left, Direction::Right);
    expect("LMOVE", moved, "a".to_string())?;
    expect("LRANGE", c.lrange(&queue, 0, -1), vec!["b".to_string(), "c".into()])?;
    expect("LPOP", c.lpop(&queue, None), "b".to_string())
}

fn geo(c: &mut Connection) -> Outcome {
    let towns = key("towns");
    let places = [
        (Coord::lon_lat(13.361389, 38.115556), "Palermo"),
        (Coord::lon_lat(15.087269, 37.502669), "Catania"),
    ];
    expect("GEOADD", c.geo_add(&towns, &places), 2)?;
    let apart: f64 = c.geo_dist(&towns, "Palermo", "Catania", Unit::Kilometers)?;
    expect("GEODIST", Ok(apart.round()), 166.0)?;
    let order = RadiusOptions::default().order(RadiusOrder::Asc);
    let near: Vec<RadiusSearchResult> =
        c.geo_radius(&towns, 15.0, 37.0, 200.0, Unit::Kilometers, order)?;
    let names: Vec<_> = near.into_iter().map(|found| found.name).collect();
    expect("GEORADIUS", Ok(names), vec!["Catania".to_string(), "Palermo".into()])
}

/// Expects messages, each once and in order.
fn hears(ear: &mut PubSub, pattern: Option<&str>, channel: &str, texts: &[String]) -> Outcome {
    for text in texts {
        let heard = ear.get_message()?;
        let got = (heard.get_pattern()?, heard.get_channel_name().to_string(), heard.get_payload()?);
        expect("a listener", Ok(got), (pattern.map(str::to_string), channel.to_string(), text.clone()))?;
    }
    Ok(())
}

fn publish(client: &redis::Client, c: &mut Connection) -> Outcome {
    let (channel, pattern, texts) = (key("news"), key("ne*"), keys("message", SENT));
    let (mut one, mut other) = (client.get_connection()?, client.get_connection()?);
    let (mut plain, mut matching) = (one.as_pubsub(), other.as_pubsub());
    plain.set_read_timeout(Some(HEARD))?;
    matching.set_read_timeout(Some(HEARD))?;
    plain.subscribe(&channel)?;
    matching.psubscribe(&pattern)?;
    for text in &texts {
        expect("PUBLISH", c.publish(&channel, text), 2)?;
    }
    hears(&mut plain, None, &channel, &texts)?;
    hears(&mut matching, Some(&pattern), &channel, &texts)
}

/// Pops, and has another connection push as soon as this one is blocked.
fn pushed<T: Send>(
    client: &redis::Client,
    push: impl FnOnce(&mut Connection) -> RedisResult<usize> + Send,
    pop: impl FnOnce() -> RedisResult<T>,
) -> RedisResult<T> {
    let mut other = client.get_connection()?;
    thread::scope(|s| {
        let pushing = s.spawn(move || {
            let begin = Instant::now();
            while begin.elapsed() < HEARD {
                let info: String = redis::cmd("INFO").arg("clients").query(&mut other)?;
                if info.lines().any(|line| line == "blocked_clients:1") {
                    break;
                }
                sleep(Duration::from_millis(20));
            }
            push(&mut other)
        });
        let popped = pop();
        pushing.join().expect("no panic")?;
        popped
    })
}

/// Pops an empty list until the time is up, and then what another connection pushes.
fn blocking(client: &redis::Client, c: &mut Connection) -> Outcome {
    let (none, queue, done, board) = (key("none"), key("{wait}:queue"), key("{wait}:done"), key("waited"));
    let begin = Instant::now();
    expect("BLPOP of an empty list", c.blpop(&none, SHORTLY), None::<(String, String)>)?;
    expect("its time is up", Ok(begin.elapsed().as_secs_f64() >= SHORTLY), true)?;
    let got = pushed(client, |o| o.rpush(&queue, "a"), || c.blpop(&[&none, &queue], LONG));
    expect("BLPOP", got, Some((queue.clone(), "a".to_string())))?;
    let got = pushed(client, |o| o.rpush(&queue, &["b", "c"]), || {
        c.blmove(&queue, &done, Direction::Left, Direction::Right, LONG)
    });
    expect("BLMOVE", got, Some("b".to_string()))?;
    expect("the source", c.lrange(&queue, 0, -1), vec!["c".to_string()])?;
    expect("the target", c.lrange(&done, 0, -1), vec!["b".to_string()])?;
    let got = pushed(client, |o| o.zadd(&board, "Ada", 1.5), || c.bzpopmin(&board, LONG));
    expect("BZPOPMIN", got, Some((board.clone(), "Ada".to_string(), 1.5)))
}

/// Reads through the library's cache, which its asynchronous connections have, what another connection changes.
fn tracking(addr: &str, c: &mut Connection) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let client = redis::Client::open(format!("redis://{addr}/?protocol=resp3"))?;
        let config = AsyncConnectionConfig::new().set_cache_config(CacheConfig::new());
        let mut caching = client.get_multiplexed_async_connection_with_config(&config).await?;
        let key = key("tracked");
        for turn in 0..5 {
            let value = format!("value{turn}");
            expect("SET", c.set(&key, &value), "OK".to_string())?;
            cached(&mut caching, &key, &value, false).await?; // it is invalidated
            cached(&mut caching, &key, &value, true).await?;
        }
        Ok(())
    })
}

/// Reads until the value is the one wanted, and if a hit is wanted, until the cache has had it.
async fn cached(caching: &mut MultiplexedConnection, key: &str, value: &str, hit: bool) -> Outcome {
    let begin = Instant::now();
    loop {
        let hits = hits(caching);
        let got: Option<String> = caching.get(key).await?;
        if got.as_deref() == Some(value) && (!hit || self::hits(caching) > hits) {
            return Ok(());
        }
        if begin.elapsed() > HEARD {
            return Err(format!("a cached GET gives {got:?}, want {value}").into());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn hits(caching: &MultiplexedConnection) -> usize {
    caching.get_cache_statistics().map_or(0, |s| s.hit)
}

/// Has the proxy restarted. A connection of redis-rs stays closed; its client opens
/// another.
fn reconnect(client: &redis::Client, c: &mut Connection) -> Outcome {
    println!("restart");
    if io::stdin().read_line(&mut String::new())? == 0 {
        return Err("the driver is gone".into());
    }
    let begin = Instant::now();
    loop {
        match c.set::<_, _, String>(key("cached"), "again") {
            Ok(_) => break,
            Err(e) if begin.elapsed() > RECONNECT => return Err(e.into()),
            Err(_) => sleep(Duration::from_millis(20)),
        }
        if let Ok(opened) = client.get_connection() {
            *c = opened;
        }
    }
    expect("GET", c.get(key("cached")), "again".to_string())?;
    pipeline(c)
}
