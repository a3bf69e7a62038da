# SPDX-License-Identifier: Apache-2.0
"""Random Python functions of three numbers: nested branches, loops, ways out, lists, expressions of
every kind. The same seed gives the same program; all of them end."""

import linecache
import random

_NAMES = "abxyz"
_HELPER = """def g(u, v):
    if u > v:
        return u - v
    while True:
        u += 2
        if u >= v:
            break
    return u


"""


class Program:
    """A function f(n, a, b) as text, and a function g(u, v) that it calls."""

    def __init__(self, seed):
        self._random = random.Random(seed)
        self._loops = 0
        lines = ["def f(n, a, b):", "    x = 1", "    y = n", "    z = a", "    l = []"]
        for _ in range(2):
            lines += self._block(1, 0, False)
        lines += ["    for v in l:", "        x = (2 * x + v) % 1009",
                  "    return a + 2 * b + 3 * x + 5 * y + 7 * z + len(l)"]
        self.source = _HELPER + "\n".join(lines) + "\n"

    def function(self):
        """The function, its source where inspection finds it."""
        name = "<random program %d>" % id(self)
        linecache.cache[name] = (len(self.source), None, self.source.splitlines(True), name)
        space: dict = {}
        exec(compile(self.source, name, "exec"), space)
        return space["f"]

    def _expression(self, depth=0):
        kind = self._random.randrange(10 if depth < 2 else 2)
        if kind == 0:
            return str(self._random.randrange(-3, 6))
        if kind <= 2:
            return self._random.choice(_NAMES)
        parts = [self._expression(depth + 1) for _ in range(2)]
        if kind == 7:
            return "(%s if %s else %s)" % (parts[0], self._condition(depth + 1), parts[1])
        return {3: "(%s + %s)", 4: "(%s - %s)", 5: "(%s * %s %% 17)", 6: "(%s // 3 + %s)",
                8: "max(%s, -%s)", 9: "g(%s %% 7, %s %% 5)"}[kind] % tuple(parts)

    def _condition(self, depth=0):
        kind = self._random.randrange(8 if depth < 2 else 2)
        sides = [self._expression(2) for _ in range(3)]
        if kind < 3:
            sign = self._random.choice(["<", ">", "<=", ">=", "==", "!="])
            return "%s %s %s" % (sides[0], sign, sides[1])
        if kind < 5:
            return "(%s %s %s)" % (self._condition(depth + 1), ("and", "or")[kind - 3],
                                   self._condition(depth + 1))
        return {5: "not %s" % self._condition(depth + 1), 6: "%s < %s <= %s" % tuple(sides),
                7: "%s in (%s, %s)" % tuple(sides)}[kind]

    def _block(self, indent, depth, in_loop):
        return [line for _ in range(self._random.randrange(1, 4))
                for line in self._statement(indent, depth, in_loop)]

    def _statement(self, indent, depth, in_loop):
        blank = "    " * indent
        kind = self._random.randrange(17)
        if kind < 4 or depth >= 3:
            return [blank + "%s = %s" % (self._random.choice(_NAMES), self._expression())]
        if kind == 4:
            return [blank + "%s += %s" % (self._random.choice(_NAMES), self._expression())]
        if kind < 8:
            return self._branch(blank, indent, depth, in_loop)
        if kind < 10:
            head = self._while(blank) if kind == 8 else self._for(blank)
            return head + self._block(indent + 1, depth + 1, True) + self._else(
                blank, indent, depth, in_loop, 0.3)
        if kind == 10 and in_loop:
            return [blank + "if %s:" % self._condition(),
                    blank + "    " + self._random.choice(["break", "continue"])]
        if kind == 11:
            return [blank + "if %s:" % self._condition(),
                    blank + "    return " + self._expression()]
        if kind == 14:
            return [blank + "a, %s = %s, a" % (self._random.choice(_NAMES[1:]), self._expression())]
        if kind == 15:
            return [blank + "try:", *self._block(indent + 1, depth + 1, in_loop),
                    blank + "finally:", blank + "    y = y + 1"]
        if kind == 16:
            return [blank + "pair = (%s, [%s])" % (self._expression(), self._expression()),
                    blank + "if %s:" % self._condition(),
                    blank + "    pair = (pair[1][0], [%s])" % self._expression(),
                    blank + "x = pair[0] - pair[1][-1]"]
        if kind == 12:
            return [blank + "if len(l) > 2:", blank + "    x = x + l.pop()"]
        return [blank + "l.append(%s)" % self._expression()]

    def _branch(self, blank, indent, depth, in_loop):
        lines = [blank + "if %s:" % self._condition()] + self._block(indent + 1, depth + 1, in_loop)
        if self._random.random() < 0.3:
            lines += [blank + "elif %s:" % self._condition()]
            lines += self._block(indent + 1, depth + 1, in_loop)
        return lines + self._else(blank, indent, depth, in_loop, 0.5)

    def _else(self, blank, indent, depth, in_loop, how_often):
        if self._random.random() > how_often:
            return []
        return [blank + "else:"] + self._block(indent + 1, depth + 1, in_loop)

    def _while(self, blank):
        self._loops += 1
        name = "k%d" % self._loops
        return [blank + "%s = 0" % name, blank + "while %s < 4 and %s:" % (name, self._condition()),
                blank + "    %s += 1" % name]

    def _for(self, blank):
        values = self._random.choice(["range(3)", "range(n)", "range(1, n)", "[1, 5, 2]",
                                      "range(n, 0, -1)", "range(b, n)"])
        return [blank + "for %s in %s:" % (self._random.choice(_NAMES), values)]
