#!/bin/bash
# fake() {
usage() {
  cat <<TEXT
usage: x
TEXT
}

function build {
  local n=${#list[@]}
  if [ "$n" -gt 0 ]; then
    echo "}"
  fi
}

main() { build "$@"; }
main
