"""The programs: where their sources are, how they are built, what they are given, and by what their result is recognised."""

import math
import random
import struct
from dataclasses import dataclass
from typing import Callable

SEED = 20240229  # of every generated input


@dataclass(frozen=True)
class Program:
    """`inputs` writes files into the directory the program will run in; `arguments` and `stdin` may name them.

    Both get the number of threads and the scale: work is about proportional to the scale.
    """

    name: str
    suite: str  # "splash", "parsec", or "" for an installed program
    directory: str  # of the sources, in the suite; of an installed program its path
    arguments: Callable
    stdin: Callable = lambda threads, scale: ""
    inputs: Callable = lambda directory, scale: None
    sources: tuple = ("*.c",)
    flags: tuple = ()
    result_file: str = ""  # holds the result; "-" is standard output
    result_lines: str = ""  # or: the lines of the output that match this expression do
    needs: tuple = ()  # files beside the sources that the program reads


def at_least(least, value):
    return max(least, round(value))


def nearest_power(base, value):
    """The power of `base` nearest to the value."""
    return base ** round(math.log(value, base))


def barnes_parameters(threads, scale):
    """One line each: file, bodies, seed, file, time step, softening, tolerance, cells, leaves, end, output interval, threads."""
    lines = ["", at_least(256, 64000 * scale), 123, "", 0.025, 0.05, 1.0, 2.0, 5.0, 0.075, 0.25, threads]
    return "".join(f"{line}\n" for line in lines)


def write_options(directory, scale):
    """Options for blackscholes: spot, strike, rate, dividend rate, volatility, years, kind, dividends, reference value."""
    draw = random.Random(SEED)
    count = at_least(64, 200000 * scale)
    with open(directory / "options.txt", "w", encoding="ascii") as file:
        file.write(f"{count}\n")
        for _ in range(count):
            file.write(f"{draw.uniform(20, 120):.2f} {draw.uniform(20, 120):.2f} {draw.uniform(0.01, 0.1):.4f} 0.00 "
                       f"{draw.uniform(0.05, 0.65):.2f} {draw.uniform(0.05, 1):.2f} {draw.choice('PC')} 0.00 0.0\n")


def write_particles(directory, scale):
    """A pool for fluidanimate: particles at rest on a shaken lattice, in the lower half of the box, at the fluid's rest density.

    The file: particles for each metre (float), their number (int), and for each its position, half-step velocity, velocity.
    """
    draw = random.Random(SEED)
    low, size = (-0.065, -0.08, -0.065), (0.13, 0.09, 0.13)
    spacing = (math.prod(size) / at_least(2000, 44000 * math.sqrt(scale))) ** (1 / 3)
    steps = [int(length / spacing) for length in size]
    with open(directory / "pool.fluid", "wb") as file:
        file.write(struct.pack("<fi", 1 / spacing, math.prod(steps)))
        for cell in range(math.prod(steps)):
            place = (cell % steps[0], cell // steps[0] % steps[1], cell // (steps[0] * steps[1]))
            position = [low[axis] + (place[axis] + draw.uniform(0.4, 0.6)) * spacing for axis in range(3)]
            file.write(struct.pack("<9f", *position, *[0.0] * 6))


def write_netlist(directory, scale):
    """A netlist for canneal: elements on a square grid, each fed by five others."""
    draw = random.Random(SEED)
    side = at_least(20, 260 * scale ** 0.25)
    count = side * side - side
    with open(directory / "chip.nets", "w", encoding="ascii") as file:
        file.write(f"{count} {side} {side}\n")
        for element in range(count):
            feeders = "\t".join(f"e{draw.randrange(count)}" for _ in range(5))
            file.write(f"e{element}\t{draw.randint(1, 2)}\t{feeders}\tEND\n")


def write_text(directory, scale):
    """Words of a small vocabulary, for pbzip2."""
    draw = random.Random(SEED)
    vocabulary = ["".join(draw.choices("etaoinshrdlu", k=draw.randint(2, 10))) for _ in range(5000)]
    with open(directory / "text", "w", encoding="ascii") as file:
        for _ in range(at_least(1, 60 * scale)):
            file.write(" ".join(draw.choices(vocabulary, k=40000)))


SPLASH_FLAGS = ("-std=c11", "-D_XOPEN_SOURCE=500", "-D_POSIX_C_SOURCE=200112", "-fno-strict-aliasing")
THREADS = "-DENABLE_THREADS"

PROGRAMS = [
    Program("fft", "splash", "kernels/fft", flags=SPLASH_FLAGS, result_lines="TEST|Checksum",
            arguments=lambda threads, scale: [f"-m{int(math.log2(nearest_power(4, 2**24 * scale)))}", f"-p{threads}", "-t"]),
    Program("lu", "splash", "kernels/lu/contiguous_blocks", flags=SPLASH_FLAGS, result_lines="TEST",
            arguments=lambda threads, scale: [f"-n{16 * at_least(4, 112 * scale ** (1 / 3))}", "-b16", f"-p{threads}"]),
    Program("radix", "splash", "kernels/radix", flags=SPLASH_FLAGS, result_lines="TEST|error",
            arguments=lambda threads, scale: [f"-n{nearest_power(2, 2**24 * scale)}", "-r1024", f"-p{threads}", "-t"]),
    Program("barnes", "splash", "apps/barnes", flags=SPLASH_FLAGS, arguments=lambda threads, scale: [], stdin=barnes_parameters),
    Program("ocean", "splash", "apps/ocean/contiguous_partitions", flags=SPLASH_FLAGS, result_lines="residual norm",
            arguments=lambda threads, scale: [f"-n{nearest_power(2, 1024 * math.sqrt(scale)) + 2}", f"-p{threads}", "-o", "-e1e-09"]),
    Program("water-nsquared", "splash", "apps/water-nsquared", flags=SPLASH_FLAGS, needs=("random.in",),
            arguments=lambda threads, scale: [],
            stdin=lambda threads, scale: f"1.5e-16 512 {at_least(1, 100 * scale)} 6 -1 3000 3 0 {threads} 6.212752\n"),
    Program("radiosity", "splash", "apps/radiosity", sources=("*.c", "glibdumb/*.c", "glibps/*.c"),
            flags=(*SPLASH_FLAGS, "-Iglibdumb", "-Iglibps"),
            arguments=lambda threads, scale: ["-batch", "-room", "-p", threads, "-bf", f"{0.005 / scale:g}"]),
    Program("blackscholes", "parsec", "pkgs/apps/blackscholes/src", sources=("blackscholes.m4.cpp",), flags=(THREADS, "-DNCO=4"),
            arguments=lambda threads, scale: [threads, "options.txt", "prices.txt"], inputs=write_options,
            result_file="prices.txt"),
    Program("swaptions", "parsec", "pkgs/apps/swaptions/src", sources=("*.cpp", "nr_routines.c"), flags=(THREADS,),
            arguments=lambda threads, scale: ["-ns", 16, "-sm", at_least(50, 100000 * scale), "-nt", threads],
            result_lines="SwaptionPrice"),
    Program("streamcluster", "parsec", "pkgs/kernels/streamcluster/src", sources=("*.cpp",), flags=(THREADS,),
            arguments=lambda threads, scale: [10, 20, 32, at_least(256, 24576 * scale), at_least(256, 24576 * scale), 1000, "none",
                                              "centres.txt", threads]),
    Program("fluidanimate", "parsec", "pkgs/apps/fluidanimate/src", sources=("pthreads.cpp", "cellpool.cpp", "parsec_barrier.cpp"),
            flags=("-D_GNU_SOURCE",), inputs=write_particles,
            arguments=lambda threads, scale: [threads, at_least(2, 32 * math.sqrt(scale)), "pool.fluid", "after.fluid"]),
    Program("canneal", "parsec", "pkgs/kernels/canneal/src", sources=("*.cpp",), flags=(THREADS,), inputs=write_netlist,
            arguments=lambda threads, scale: [threads, at_least(500, 35000 * math.sqrt(scale)), 2000, "chip.nets", 32]),
    Program("pbzip2", "", "/usr/bin/pbzip2", inputs=write_text, result_file="-",
            arguments=lambda threads, scale: [f"-p{threads}", "-k", "-c", "text"]),
]
