#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Compile and run each probe at the levels of optimisation that libraries use; say which one is wrong.
set -u
cd "$1" || exit 1
printf '%s' "$PROBES" | base64 -d | tar -xz || exit 1
bad=0
for source in *.c *.cc *.f90; do
  case $source in
    *.c) compiler=$CC libraries=-lm ;;
    *.cc) compiler="$CXX -std=c++20" libraries='' ;;
    *.f90) compiler=$FC libraries='' ;;
  esac
  for level in -O0 -O2 -O3; do
    # shellcheck disable=SC2086  # a compiler may be several words
    if ! $compiler "$level" -o probe "$source" $libraries 2>messages; then
      echo "the toolchain does not compile $source with $level: $(head -n 3 messages)" >&2
      bad=1
      continue
    fi
    ./probe >messages 2>&1
    case $? in
      0) continue ;;
      # Of the loader and the shell: a library that the host lacks, another machine's program.
      126 | 127) echo "what the toolchain makes of $source does not start: $(head -n 3 messages)" >&2 ;;
      *) echo "the toolchain miscompiles $source with $level ($(head -n 1 "$source"))" >&2 ;;
    esac
    bad=1
  done
done
[ "$bad" -eq 0 ] || echo "$($CC --version | head -n 1) is not fit for this; choose another by toolchain__mode" >&2
exit "$bad"
