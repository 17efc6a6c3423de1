"""Deterministic input: make_input.py text|mixed MiB (to standard output), tree DIR, project DIR."""

import os
import random
import sys

WORDS = "the quick brown fox jumps over lazy dog while seven wizards brew potions of deadly nightshade abc cafe".split()


def text(mebibytes, out):
    rng = random.Random(1)
    size = 0
    while size < mebibytes << 20:
        lines = []
        for _ in range(2000):
            words = rng.choices(WORDS, k=rng.randrange(1, 12))
            lines.append(f"{rng.randrange(10**6)} {' '.join(words)}{rng.randrange(1000):03d}\n")
        block = "".join(lines).encode()
        size += len(block)
        out.write(block)


def mixed(mebibytes, out):
    """Text, noise and zeros by turns, so that compressors meet all kinds."""
    rng = random.Random(2)
    for block in range(mebibytes * 4):
        kind = block % 4
        if kind == 0:
            out.write(rng.randbytes(1 << 18))
        elif kind == 1:
            out.write(bytes(1 << 18))
        else:
            words = " ".join(rng.choices(WORDS, k=1 << 16)).encode()
            out.write((words * 2)[: 1 << 18])


def tree(root):
    rng = random.Random(3)
    for folder in ("a.d", "b.d/c.d", "e"):
        os.makedirs(os.path.join(root, folder))
        for i in range(25):
            with open(os.path.join(root, folder, f"file{i}"), "w", encoding="ascii") as out:
                out.write(" ".join(rng.choices(WORDS, k=rng.randrange(1000))) + "\n")
    with open(os.path.join(root, "a"), "w", encoding="ascii") as out:
        out.write("top\n")
    os.symlink("a", os.path.join(root, "link"))


def project(root):
    """A program of twelve files with a make file."""
    names = [f"part{i}" for i in range(12)]
    for i, name in enumerate(names):
        with open(os.path.join(root, name + ".c"), "w", encoding="ascii") as out:
            out.write(f"#include <stdio.h>\n#include <string.h>\n#include <stdlib.h>\nunsigned long {name}(unsigned long x) {{\n")
            for k in range(60):
                out.write(f"  x = x * {2 * k + 3}UL + {i * 100 + k}UL; x ^= x >> {k % 29 + 3};\n")
            out.write("  return x;\n}\n")
    with open(os.path.join(root, "calc.c"), "w", encoding="ascii") as out:
        out.write("#include <stdio.h>\n")
        out.writelines(f"unsigned long {name}(unsigned long);\n" for name in names)
        out.write("int main(void) {\n  unsigned long x = 1;\n")
        out.writelines(f"  x = {name}(x);\n" for name in names)
        out.write('  printf("calc %lx\\n", x);\n  return 0;\n}\n')
    objects = " ".join(name + ".o" for name in ["calc", *names])
    with open(os.path.join(root, "Makefile"), "w", encoding="ascii") as out:
        out.write(f"CFLAGS = -O2\ncalc: {objects}\n\t$(CC) -o $@ $^\nclean:\n\trm -f calc *.o\n")


if __name__ == "__main__":
    if sys.argv[1] in ("text", "mixed"):
        globals()[sys.argv[1]](int(sys.argv[2]), sys.stdout.buffer)
    else:
        globals()[sys.argv[1]](sys.argv[2])
