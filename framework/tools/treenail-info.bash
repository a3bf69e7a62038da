# SPDX-License-Identifier: Apache-2.0
# bash completion for treenail-info; tests/python/test_info.py holds it to --help.
complete -W '--help --json --version' treenail-info
