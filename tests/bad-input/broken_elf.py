"""Broken executables, made from a good dynamic one by writing into its headers. Fields are named as in elf(5)."""

import struct

EHDR = {"e_type": (16, "H"), "e_machine": (18, "H"), "e_version": (20, "I"), "e_entry": (24, "Q"), "e_phoff": (32, "Q"),
        "e_shoff": (40, "Q"), "e_ehsize": (52, "H"), "e_phentsize": (54, "H"), "e_phnum": (56, "H"), "e_shnum": (60, "H")}
PHDR = {"p_type": (0, "I"), "p_flags": (4, "I"), "p_offset": (8, "Q"), "p_vaddr": (16, "Q"), "p_filesz": (32, "Q"),
        "p_memsz": (40, "Q"), "p_align": (48, "Q")}
PT_LOAD, PT_DYNAMIC, PT_INTERP, PT_TLS, PT_GNU_STACK = 1, 2, 3, 7, 0x6474E551


class Elf:
    def __init__(self, data):
        self.data = bytearray(data)

    def header(self, **fields):
        for name, value in fields.items():
            offset, code = EHDR[name]
            struct.pack_into("<" + code, self.data, offset, value)
        return self

    def get(self, name):
        offset, code = EHDR[name]
        return struct.unpack_from("<" + code, self.data, offset)[0]

    def segments(self, kind):
        start = self.get("e_phoff")
        table = [start + 56 * i for i in range(self.get("e_phnum"))]
        return [at for at in table if struct.unpack_from("<I", self.data, at)[0] == kind]

    def segment(self, kind, index=0, **fields):
        at = self.segments(kind)[index]
        for name, value in fields.items():
            offset, code = PHDR[name]
            struct.pack_into("<" + code, self.data, at + offset, value)
        return self

    def value(self, kind, index, name):
        offset, code = PHDR[name]
        return struct.unpack_from("<" + code, self.data, self.segments(kind)[index] + offset)[0]

    def at(self, offset, data):
        self.data[offset:offset + len(data)] = data
        return self


def corpus(good):
    """{name: content} of broken variants of the executable `good`."""
    def fresh():
        return Elf(good)

    interp = fresh().value(PT_INTERP, 0, "p_offset")
    made = {f"truncated-{size}": Elf(good[:size]) for size in (0, 1, 3, 4, 5, 16, 40, 63, 64, 100, 500, 4096, 9000)}
    made |= {
        "text-file": Elf(b"just some text\nnot a program\n"),
        "zeros": Elf(bytes(10000)),
        "noise": Elf(bytes((i * 7919 >> 3) & 255 for i in range(10000))),
        "magic-only-then-noise": Elf(b"\x7fELF" + bytes((i * 31) & 255 for i in range(5000))),
        "class-32": fresh().at(4, b"\x01"),
        "class-9": fresh().at(4, b"\x09"),
        "big-endian": fresh().at(5, b"\x02"),
        "ident-version-0": fresh().at(6, b"\x00"),
        "abi-99": fresh().at(7, b"\x63"),
        "machine-aarch64": fresh().header(e_machine=183),
        "machine-i386": fresh().at(4, b"\x01").header(e_machine=3),
        "machine-0": fresh().header(e_machine=0),
        "type-rel": fresh().header(e_type=1),
        "type-core": fresh().header(e_type=4),
        "type-0": fresh().header(e_type=0),
        "type-exec-at-zero": fresh().header(e_type=2),
        "entry-zero": fresh().header(e_entry=0),
        "entry-kernel": fresh().header(e_entry=0xFFFF800000000000),
        "entry-non-canonical": fresh().header(e_entry=1 << 50),
        "phoff-zero": fresh().header(e_phoff=0),
        "phoff-beyond": fresh().header(e_phoff=1 << 40),
        "phoff-wraps": fresh().header(e_phoff=(1 << 64) - 8),
        "phoff-odd": fresh().header(e_phoff=65),
        "phnum-zero": fresh().header(e_phnum=0),
        "phnum-65535": fresh().header(e_phnum=65535),
        "phnum-1500": fresh().header(e_phnum=1500),
        "phentsize-0": fresh().header(e_phentsize=0),
        "phentsize-32": fresh().header(e_phentsize=32),
        "phentsize-64": fresh().header(e_phentsize=64),
        "shoff-wild": fresh().header(e_shoff=(1 << 63) + 3, e_shnum=65535),
        "load-offset-beyond": fresh().segment(PT_LOAD, 1, p_offset=1 << 40),
        "load-offset-wraps": fresh().segment(PT_LOAD, 1, p_offset=(1 << 64) - 4096),
        "load-filesz-huge": fresh().segment(PT_LOAD, 1, p_filesz=1 << 40, p_memsz=1 << 40),
        "load-filesz-beyond-end": fresh().segment(PT_LOAD, 3, p_filesz=1 << 24, p_memsz=1 << 24),
        "load-memsz-below-filesz": fresh().segment(PT_LOAD, 1, p_memsz=1),
        "load-memsz-huge": fresh().segment(PT_LOAD, 3, p_memsz=1 << 62),
        "load-memsz-wraps": fresh().segment(PT_LOAD, 3, p_memsz=(1 << 64) - 4096),
        "load-vaddr-kernel": fresh().segment(PT_LOAD, 0, p_vaddr=0xFFFF800000000000),
        "load-vaddr-misaligned": fresh().segment(PT_LOAD, 1, p_vaddr=0x1234),
        "load-align-3": fresh().segment(PT_LOAD, 1, p_align=3),
        "load-align-huge": fresh().segment(PT_LOAD, 0, p_align=1 << 46),
        "load-flags-none": fresh().segment(PT_LOAD, 1, p_flags=0),
        "load-overlap": fresh().segment(PT_LOAD, 2, p_vaddr=fresh().value(PT_LOAD, 1, "p_vaddr"),
                                        p_offset=fresh().value(PT_LOAD, 1, "p_offset")),
        "load-out-of-order": fresh().segment(PT_LOAD, 0, p_vaddr=1 << 30),
        "load-far-apart": fresh().segment(PT_LOAD, 3, p_vaddr=(1 << 46) + fresh().value(PT_LOAD, 3, "p_vaddr")),
        "interp-missing-file": fresh().at(interp, b"/lib64/nosuch\0"),
        "interp-directory": fresh().at(interp, b"/usr/lib\0"),
        "interp-empty": fresh().at(interp, b"\0").segment(PT_INTERP, 0, p_filesz=1),
        "interp-not-terminated": fresh().at(interp, b"x" * 28),
        "interp-size-zero": fresh().segment(PT_INTERP, 0, p_filesz=0),
        "interp-size-huge": fresh().segment(PT_INTERP, 0, p_filesz=1 << 30),
        "interp-beyond": fresh().segment(PT_INTERP, 0, p_offset=1 << 40),
        "interp-not-elf": fresh().at(interp, b"/etc/passwd\0"),
        "dynamic-wild": fresh().segment(PT_DYNAMIC, 0, p_vaddr=0x7FFFFFFF0000),
        "dynamic-empty": fresh().segment(PT_DYNAMIC, 0, p_memsz=0, p_filesz=0),
        "stack-executable": fresh().segment(PT_GNU_STACK, 0, p_flags=7),
        "no-load": Elf(good),
        "tls-wild": Elf(good),
    }
    while made["no-load"].segments(PT_LOAD):
        made["no-load"].segment(PT_LOAD, 0, p_type=0)
    made["tls-wild"].segment(PT_GNU_STACK, 0, p_type=PT_TLS, p_vaddr=1 << 45, p_memsz=1 << 40, p_filesz=1 << 40, p_align=3)
    return {name: bytes(elf.data) for name, elf in made.items()}
