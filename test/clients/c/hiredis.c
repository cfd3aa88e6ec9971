/* Runs the scenario of ../README.md with hiredis: hiredis HOST:PORT */

#include <hiredis/hiredis.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TTL = 100, PIPELINED = 500, RECONNECT_SECONDS = 20, KEY_BYTES = 64, SENT = 20, HEARD_SECONDS = 10 };

static const char VALUE[] = "computed\r\n"; /* with its final zero byte */

static redisContext *c;
static char *host; /* the proxy's address */
static int port;
static char failure[512]; /* why the running step has failed */

static bool fail(const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(failure, sizeof failure, format, args);
    va_end(args);
    return false;
}

static void report(const char *step, bool (*run)(void)) {
    if (run()) {
        printf("ok %s\n", step);
    } else {
        printf("FAIL %s: %s\n", step, failure);
    }
}

/* The four below take the reply, which may be NULL for a broken connection. */

static bool want_integer(redisReply *r, long long least, long long most) {
    bool ok = r != NULL && r->type == REDIS_REPLY_INTEGER && r->integer >= least && r->integer <= most;
    if (!ok) {
        fail("type %d, integer %lld, %s", r ? r->type : -1, r ? r->integer : 0, c->errstr);
    }
    freeReplyObject(r);
    return ok;
}

static bool is_bytes(const redisReply *r, const char *bytes, size_t n) {
    bool text = r != NULL && (r->type == REDIS_REPLY_STRING || r->type == REDIS_REPLY_STATUS);
    return text && (size_t)r->len == n && memcmp(r->str, bytes, n) == 0;
}

static bool want_bytes(redisReply *r, const char *bytes, size_t n) {
    bool ok = is_bytes(r, bytes, n);
    if (!ok) {
        fail("type %d, text %.200s, want %s", r ? r->type : -1, r && r->str ? r->str : "", bytes);
    }
    freeReplyObject(r);
    return ok;
}

static bool want_text(redisReply *r, const char *text) {
    return want_bytes(r, text, strlen(text));
}

static bool want_nil(redisReply *r) {
    bool ok = r != NULL && r->type == REDIS_REPLY_NIL;
    if (!ok) {
        fail("type %d, want nil", r ? r->type : -1);
    }
    freeReplyObject(r);
    return ok;
}

/* A command with n keys, and with a value after each if they are to be set. */
static redisReply *with_keys(const char *command, const char *name, int n, bool values) {
    const char **args = calloc(2 * n + 1, sizeof *args);
    char (*keys)[KEY_BYTES] = calloc(n, KEY_BYTES);
    int count = 0;
    args[count++] = command;
    for (int i = 0; i < n; i++) {
        snprintf(keys[i], KEY_BYTES, "hiredis:%s%d", name, i);
        args[count++] = keys[i];
        if (values) {
            args[count++] = keys[i]; /* each key holds its own name */
        }
    }
    redisReply *r = redisCommandArgv(c, count, args, NULL);
    free(keys);
    free(args);
    return r;
}

static bool ping(void) { return want_text(redisCommand(c, "PING"), "PONG"); }

static bool get_or_set(void) {
    return want_nil(redisCommand(c, "GET hiredis:cached")) &&
           want_text(redisCommand(c, "SET hiredis:cached %b EX %d", VALUE, sizeof VALUE, TTL), "OK") &&
           want_bytes(redisCommand(c, "GET hiredis:cached"), VALUE, sizeof VALUE) &&
           want_integer(redisCommand(c, "TTL hiredis:cached"), 1, TTL);
}

static bool many(void) {
    if (!want_text(with_keys("MSET", "many", 100, true), "OK")) {
        return false;
    }
    redisReply *r = with_keys("MGET", "many", 101, false); /* the last is missing */
    bool ok = r != NULL && r->type == REDIS_REPLY_ARRAY && r->elements == 101 &&
              r->element[100]->type == REDIS_REPLY_NIL;
    for (int i = 0; ok && i < 100; i++) {
        char key[KEY_BYTES];
        ok = is_bytes(r->element[i], key, snprintf(key, sizeof key, "hiredis:many%d", i));
    }
    freeReplyObject(r);
    return ok || fail("MGET gives something else");
}

static bool delete(void) { return want_integer(with_keys("DEL", "many", 101, false), 100, 100); }

/* Deletes, or only counts, the keys that match; -1 for an error. */
static int scan(const char *pattern, bool remove) {
    char cursor[32] = "0";
    int found = 0;
    do {
        redisReply *r = redisCommand(c, "SCAN %s MATCH %s", cursor, pattern);
        if (r == NULL || r->type != REDIS_REPLY_ARRAY || r->elements != 2) {
            freeReplyObject(r);
            return -1;
        }
        snprintf(cursor, sizeof cursor, "%s", r->element[0]->str);
        redisReply *keys = r->element[1];
        for (size_t i = 0; i < keys->elements; i++) {
            redisReply *deleted = remove ? redisCommand(c, "DEL %s", keys->element[i]->str) : NULL;
            found += remove ? deleted != NULL && deleted->integer == 1 : 1;
            freeReplyObject(deleted);
        }
        freeReplyObject(r);
    } while (strcmp(cursor, "0") != 0);
    return found;
}

static bool scan_and_delete(void) {
    if (!want_text(with_keys("MSET", "scanned:", 300, true), "OK") ||
        !want_text(with_keys("MSET", "kept:", 10, true), "OK")) {
        return false;
    }
    int gone = scan("hiredis:scanned:*", true), left = scan("hiredis:scanned:*", false);
    int kept = scan("hiredis:kept:*", false);
    return (gone == 300 && left == 0 && kept >= 10) ||
           fail("deleted %d of 300, left %d, kept %d of 10", gone, left, kept);
}

static bool rate_limit(void) {
    for (int i = 1; i <= 5; i++) {
        if (!want_integer(redisCommand(c, "INCR hiredis:limited"), i, i)) {
            return false;
        }
        if (i == 1 && !want_integer(redisCommand(c, "EXPIRE hiredis:limited %d", TTL), 1, 1)) {
            return false;
        }
    }
    return want_integer(redisCommand(c, "TTL hiredis:limited"), 1, TTL);
}

static bool lock(void) {
    return want_text(redisCommand(c, "SET hiredis:lock mine NX EX %d", TTL), "OK") &&
           want_nil(redisCommand(c, "SET hiredis:lock theirs NX EX %d", TTL)) &&
           want_integer(redisCommand(c, "DELIFEQ hiredis:lock theirs"), 0, 0) &&
           want_integer(redisCommand(c, "DELIFEQ hiredis:lock mine"), 1, 1) &&
           want_nil(redisCommand(c, "GET hiredis:lock"));
}

static bool pipeline(void) {
    for (int i = 0; i < PIPELINED; i++) {
        redisAppendCommand(c, "SET hiredis:piped%d %d", i, i);
        redisAppendCommand(c, "GET hiredis:piped%d", i);
    }
    for (int i = 0; i < PIPELINED; i++) {
        char want[16];
        snprintf(want, sizeof want, "%d", i);
        void *set = NULL, *get = NULL;
        redisGetReply(c, &set);
        redisGetReply(c, &get);
        bool stored = want_text(set, "OK"), same = want_text(get, want);
        if (!stored || !same) {
            return false;
        }
    }
    return true;
}

/* Takes the reply, an array of texts that are to be the ones given, in their order. */
static bool want_texts(redisReply *r, int n, ...) {
    bool ok = r != NULL && r->type == REDIS_REPLY_ARRAY && r->elements == (size_t)n;
    va_list texts;
    va_start(texts, n);
    for (int i = 0; ok && i < n; i++) {
        const char *text = va_arg(texts, const char *);
        ok = is_bytes(r->element[i], text, strlen(text));
    }
    va_end(texts);
    if (!ok) {
        fail("type %d, %zu elements, want %d others", r ? r->type : -1, r ? r->elements : 0, n);
    }
    freeReplyObject(r);
    return ok;
}

static bool hash(void) {
    return want_integer(redisCommand(c, "HSET hiredis:hash name %s visits %d", "Ada", 41), 2, 2) &&
           want_integer(redisCommand(c, "HINCRBY hiredis:hash visits 1"), 42, 42) &&
           want_texts(redisCommand(c, "HGETALL hiredis:hash"), 4, "name", "Ada", "visits", "42") &&
           want_texts(redisCommand(c, "HMGET hiredis:hash visits name"), 2, "42", "Ada") &&
           want_integer(redisCommand(c, "HDEL hiredis:hash name none"), 1, 1);
}

static bool set(void) {
    return want_integer(redisCommand(c, "SADD hiredis:{set}:1 a b c"), 3, 3) &&
           want_integer(redisCommand(c, "SADD hiredis:{set}:2 b d"), 2, 2) &&
           want_texts(redisCommand(c, "SINTER hiredis:{set}:1 hiredis:{set}:2"), 1, "b") &&
           want_integer(redisCommand(c, "SREM hiredis:{set}:1 a d"), 1, 1);
}

static bool sorted_set(void) {
    return want_integer(redisCommand(c, "ZADD hiredis:board 1 Ada %f Bob 3 Cy", 2.5), 3, 3) &&
           want_text(redisCommand(c, "ZINCRBY hiredis:board 2 Ada"), "3") &&
           want_texts(redisCommand(c, "ZRANGE hiredis:board 0 1 REV WITHSCORES"), 4, "Cy", "3", "Ada", "3");
}

static bool list(void) {
    return want_integer(redisCommand(c, "RPUSH hiredis:{list}:queue a b c"), 3, 3) &&
           want_text(redisCommand(c, "LMOVE hiredis:{list}:queue hiredis:{list}:done LEFT RIGHT"), "a") &&
           want_texts(redisCommand(c, "LRANGE hiredis:{list}:queue 0 -1"), 2, "b", "c");
}

static bool geo(void) {
    const char *place = "GEOADD hiredis:towns %f %f %s";
    return want_integer(redisCommand(c, place, 13.361389, 38.115556, "Palermo"), 1, 1) &&
           want_integer(redisCommand(c, place, 15.087269, 37.502669, "Catania"), 1, 1) &&
           want_text(redisCommand(c, "GEODIST hiredis:towns Palermo Catania km"), "166.2742") &&
           want_texts(redisCommand(c, "GEOSEARCH hiredis:towns FROMLONLAT 15 37 BYRADIUS 200 km ASC"), 2,
                      "Catania", "Palermo");
}

/* Another connection, whose replies come soon. NULL for none. */
static redisContext *another(void) {
    redisContext *own = redisConnect(host, port);
    struct timeval patience = {HEARD_SECONDS, 0};
    if (own == NULL || own->err || redisSetTimeout(own, patience) != REDIS_OK) {
        fail("connecting again: %s", own ? own->errstr : "no memory");
        redisFree(own);
        return NULL;
    }
    return own;
}

/* The next reply, or message. */
static redisReply *next(redisContext *own) {
    void *r = NULL;
    redisGetReply(own, &r);
    return r;
}

/* Takes the reply to a subscription, the first of its connection. */
static bool subscribed(redisReply *r, const char *kind, const char *name) {
    bool ok = r != NULL && r->type == REDIS_REPLY_ARRAY && r->elements == 3 &&
              is_bytes(r->element[0], kind, strlen(kind)) && is_bytes(r->element[1], name, strlen(name)) &&
              r->element[2]->integer == 1;
    freeReplyObject(r);
    return ok || fail("%s of %s is not confirmed", kind, name);
}

static bool publish(void) {
    redisContext *plain = another(), *matching = another();
    bool ok = plain != NULL && matching != NULL &&
              subscribed(redisCommand(plain, "SUBSCRIBE hiredis:news"), "subscribe", "hiredis:news") &&
              subscribed(redisCommand(matching, "PSUBSCRIBE hiredis:ne*"), "psubscribe", "hiredis:ne*");
    for (int i = 0; ok && i < SENT; i++) {
        ok = want_integer(redisCommand(c, "PUBLISH hiredis:news message%d", i), 2, 2);
    }
    for (int i = 0; ok && i < SENT; i++) {
        char text[16];
        snprintf(text, sizeof text, "message%d", i);
        ok = want_texts(next(plain), 3, "message", "hiredis:news", text) &&
             want_texts(next(matching), 4, "pmessage", "hiredis:ne*", "hiredis:news", text);
    }
    redisFree(plain);
    redisFree(matching);
    return ok;
}

/* Who listens to a channel of a shard channel's name hears other messages. */
static bool shard_publish(void) {
    redisContext *shard = another(), *plain = another();
    bool ok = shard != NULL && plain != NULL &&
              subscribed(redisCommand(shard, "SSUBSCRIBE hiredis:shard"), "ssubscribe", "hiredis:shard") &&
              subscribed(redisCommand(plain, "SUBSCRIBE hiredis:shard"), "subscribe", "hiredis:shard") &&
              want_integer(redisCommand(c, "SPUBLISH hiredis:shard one"), 1, 1) &&
              want_integer(redisCommand(c, "PUBLISH hiredis:shard two"), 1, 1) &&
              want_integer(redisCommand(c, "SPUBLISH hiredis:shard three"), 1, 1) &&
              want_texts(next(shard), 3, "smessage", "hiredis:shard", "one") &&
              want_texts(next(shard), 3, "smessage", "hiredis:shard", "three") &&
              want_texts(next(plain), 3, "message", "hiredis:shard", "two");
    redisFree(shard);
    redisFree(plain);
    return ok;
}

/* Sends a command that waits. Returns when its client is blocked. */
static bool blocks(redisContext *own, const char *command) {
    int done = 0;
    redisAppendCommand(own, command);
    while (!done) {
        if (redisBufferWrite(own, &done) != REDIS_OK) {
            return fail("%s: %s", command, own->errstr);
        }
    }
    for (time_t end = time(NULL) + HEARD_SECONDS; time(NULL) < end; usleep(20000)) {
        redisReply *r = redisCommand(c, "INFO clients");
        bool blocked = r != NULL && r->str != NULL && strstr(r->str, "\r\nblocked_clients:1\r\n") != NULL;
        freeReplyObject(r);
        if (blocked) {
            return true;
        }
    }
    return fail("%s does not block", command);
}

/* Pops an empty list until the time is up, and then what another connection pushes. */
static bool blocking(void) {
    redisContext *own = another();
    bool ok = own != NULL && want_nil(redisCommand(own, "BLPOP hiredis:none 0.1")) &&
              blocks(own, "BLPOP hiredis:none hiredis:{wait}:queue 10") &&
              want_integer(redisCommand(c, "RPUSH hiredis:{wait}:queue a"), 1, 1) &&
              want_texts(next(own), 2, "hiredis:{wait}:queue", "a") &&
              blocks(own, "BLMOVE hiredis:{wait}:queue hiredis:{wait}:done LEFT RIGHT 10") &&
              want_integer(redisCommand(c, "RPUSH hiredis:{wait}:queue b c"), 2, 2) && want_text(next(own), "b") &&
              want_texts(redisCommand(c, "LRANGE hiredis:{wait}:queue 0 -1"), 1, "c") &&
              want_texts(redisCommand(c, "LRANGE hiredis:{wait}:done 0 -1"), 1, "b") &&
              blocks(own, "BZPOPMIN hiredis:waited 10") &&
              want_integer(redisCommand(c, "ZADD hiredis:waited 1.5 Ada"), 1, 1) &&
              want_texts(next(own), 3, "hiredis:waited", "Ada", "1.5");
    redisFree(own);
    return ok;
}

/* Waits for an invalidation of the key. Any may be told besides, and NULL stands for all keys. */
static bool invalidated(redisContext *ear, const char *key) {
    for (;;) {
        redisReply *r = next(ear);
        if (r == NULL || r->type != REDIS_REPLY_ARRAY || r->elements != 3) {
            freeReplyObject(r);
            return fail("no invalidation: %s", ear->errstr);
        }
        redisReply *keys = r->element[2];
        bool all = keys->type == REDIS_REPLY_NIL, found = all;
        for (size_t i = 0; !all && i < keys->elements; i++) {
            found |= is_bytes(keys->element[i], key, strlen(key));
        }
        freeReplyObject(r);
        if (found) {
            return true;
        }
    }
}

/* This version has no RESP3: another connection hears the invalidations, as with RESP2. */
static bool tracking(void) {
    redisContext *reader = another(), *ear = another();
    redisReply *id = ear ? redisCommand(ear, "CLIENT ID") : NULL;
    const char *channel = "__redis__:invalidate";
    bool ok = reader != NULL && id != NULL && want_text(redisCommand(c, "SET hiredis:tracked value0"), "OK") &&
              subscribed(redisCommand(ear, "SUBSCRIBE %s", channel), "subscribe", channel) &&
              want_text(redisCommand(reader, "CLIENT TRACKING ON REDIRECT %lld", id->integer), "OK");
    for (int i = 0; ok && i < 5; i++) {
        char old[16], new[16];
        snprintf(old, sizeof old, "value%d", i);
        snprintf(new, sizeof new, "value%d", i + 1);
        ok = want_text(redisCommand(reader, "GET hiredis:tracked"), old) &&
             want_text(redisCommand(c, "SET hiredis:tracked %s", new), "OK") &&
             invalidated(ear, "hiredis:tracked") && want_text(redisCommand(reader, "GET hiredis:tracked"), new);
    }
    freeReplyObject(id);
    redisFree(reader);
    redisFree(ear);
    return ok;
}

/* Has the proxy restarted. */
static bool reconnect(void) {
    puts("restart");
    if (getchar() == EOF) {
        return fail("the driver is gone");
    }
    for (time_t end = time(NULL) + RECONNECT_SECONDS; time(NULL) < end; usleep(20000)) {
        if (want_text(redisCommand(c, "SET hiredis:cached again"), "OK")) {
            return want_text(redisCommand(c, "GET hiredis:cached"), "again") && pipeline();
        }
        redisReconnect(c);
    }
    return fail("no answer: %s", c->errstr);
}

int main(int argc, char **argv) {
    char *colon = argc == 2 ? strchr(argv[1], ':') : NULL;
    if (colon == NULL) {
        fprintf(stderr, "usage: hiredis HOST:PORT\n");
        return 2;
    }
    *colon = 0;
    host = argv[1];
    port = atoi(colon + 1);
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("version %d.%d.%d\n", HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH);
    c = redisConnect(host, port);
    if (c == NULL || c->err) {
        printf("FAIL connect: %s\n", c ? c->errstr : "no memory");
        return 0;
    }
    report("connect", ping);
    report("get-or-set", get_or_set);
    report("many", many);
    report("delete", delete);
    report("scan", scan_and_delete);
    report("rate-limit", rate_limit);
    report("lock", lock);
    report("pipeline", pipeline);
    report("hash", hash);
    report("set", set);
    report("sorted-set", sorted_set);
    report("list", list);
    report("geo", geo);
    report("publish", publish);
    report("shard-publish", shard_publish);
    report("blocking", blocking);
    report("tracking", tracking);
    report("reconnect", reconnect);
    redisFree(c);
    return 0;
}
