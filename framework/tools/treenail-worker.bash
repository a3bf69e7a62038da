# SPDX-License-Identifier: Apache-2.0
# bash completion for treenail-worker; tests/python/test_worker_program.py holds it to --help.
complete -o nospace -W '--allow-ops= --allow-path= --authority= --certificate= --check --cluster= --config= --cpus= --help --job= --keepalive= --key= --listen= --max-held-bytes= --max-idle-seconds= --max-memory-bytes= --max-message-bytes= --max-nodes= --max-partial-runs= --max-plans= --max-sessions= --max-step-seconds= --open-to= --plain-text --plugin= --revoked= --task= --token-file= --version' treenail-worker
