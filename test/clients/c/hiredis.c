/* Runs the scenario of ../README.md with hiredis: hiredis HOST:PORT */

#include <hiredis/hiredis.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TTL = 100, PIPELINED = 500, RECONNECT_SECONDS = 20, KEY_BYTES = 64 };

static const char VALUE[] = "computed\r\n"; /* with its final zero byte */

static redisContext *c;
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
    char *port = argc == 2 ? strchr(argv[1], ':') : NULL;
    if (port == NULL) {
        fprintf(stderr, "usage: hiredis HOST:PORT\n");
        return 2;
    }
    *port++ = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("version %d.%d.%d\n", HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH);
    c = redisConnect(argv[1], atoi(port));
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
    report("reconnect", reconnect);
    redisFree(c);
    return 0;
}
