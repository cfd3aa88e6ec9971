#!/usr/bin/env bash
# Refreshes cmd/dunlin/default.pgo, which tells `go build` what to inline. The script profiles a node, and a proxy with
# three nodes, while redis-benchmark loads them as in the race. It takes about a minute and needs redis-benchmark,
# redis-cli and curl.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=20 # of each profile
dir=$(mktemp -d)
finish() {
  # shellcheck disable=SC2046 # one word a job
  kill $(jobs -p) 2>/dev/null || true
  rm -rf "$dir"
}
trap finish EXIT

# load_until FILE PORT runs all pipelines in turn until FILE exists.
load_until() {
  while [ ! -e "$1" ]; do
    for pipeline in 1 16 64; do
      redis-benchmark -p "$2" -t set,get -c 50 -P "$pipeline" -n $((50000 + 50000 * pipeline)) -r 1000000 -d 64 -q >/dev/null
    done
    redis-benchmark -p "$2" -c 50 -P 4 -n 50000 -r 1000000 -q mget key:__rand_int__ key:__rand_int__ key:__rand_int__ >/dev/null
  done
}

# profile NAME PORT ADMIN ARGUMENTS profiles one process.
profile() {
  local name=$1 port=$2 admin=$3
  shift 3
  "$dir/dunlin" "$@" --pprof 2>"$dir/log" &
  local server=$! tries=0
  until [ "$(redis-cli -p "$port" set key value 2>/dev/null)" = OK ]; do
    if ! kill -0 "$server" 2>/dev/null || [ $((tries += 1)) = 150 ]; then
      echo "$name does not serve:" && tail -n 3 "$dir/log" && exit 1
    fi
    sleep 0.2
  done
  load_until "$dir/$name.done" "$port" &
  local load=$!
  curl -sSf -o "$dir/$name" "http://127.0.0.1:$admin/debug/pprof/profile?seconds=$seconds"
  touch "$dir/$name.done"
  wait "$load"
  kill "$server"
  wait "$server" || true
}

go build -pgo=off -o "$dir/dunlin" ./cmd/dunlin
profile node 21000 21002 node --listen 127.0.0.1:21000 --gossip 127.0.0.1:21001 --admin 127.0.0.1:21002 --memory 1gb
profile cluster 21010 21030 local --listen 127.0.0.1:21010 --admin 127.0.0.1:21030 --memory 1gb
go tool pprof -proto "$dir/node" "$dir/cluster" >cmd/dunlin/default.pgo 2>/dev/null
ls -l cmd/dunlin/default.pgo
