# SPDX-License-Identifier: Apache-2.0
"""List the dearest edges of the last builds, from .ninja_log, and hold compilations to the budget.

The budget (1.5 s a framework file, 0.6 s a kernel file and level) is processor time on a quiet
machine; the log has wall time, so the list is a hint, not a test.
"""

import argparse


def read(path):
    seconds = {}
    with open(path, encoding="utf-8") as stream:
        for line in stream:
            fields = line.rstrip("\n").split("\t")
            if len(fields) >= 4 and fields[0].isdigit():
                seconds[fields[3]] = (int(fields[1]) - int(fields[0])) / 1000.0
    return seconds


def budget(output):
    if output.startswith("obj/core/framework"):
        return 1.5
    if "/kernels/cpu/" in output:
        return 2.0
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--log", required=True)
    parser.add_argument("--count", type=int, default=30)
    options = parser.parse_args()
    seconds = read(options.log)
    compiled = {k: v for k, v in seconds.items() if k.endswith(".o")}
    for output, took in sorted(seconds.items(), key=lambda row: (-row[1], row[0]))[:options.count]:
        limit = budget(output)
        over = "  over %.1f s" % limit if limit is not None and took > limit else ""
        print("%8.2f s  %s%s" % (took, output, over))
    print("%8.2f s  in %d compilations, %.2f s in %d other steps" % (
        sum(compiled.values()), len(compiled), sum(seconds.values()) - sum(compiled.values()),
        len(seconds) - len(compiled)))


if __name__ == "__main__":
    main()
