# SPDX-License-Identifier: Apache-2.0
# bash completion for treenail-worker; tests/python/test_worker_program.py holds it to --help.
complete -o nospace -W '--check --cluster= --config= --cpus= --help --job= --keepalive= --listen= --plain-text --task= --version' treenail-worker
