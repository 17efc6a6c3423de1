// What a Fortran compiler says of `integer(kind=4), dimension(10,-2:2) :: grid`: lower bounds of 1 are
// left out, indices are in the order of the source.
	.bss
	.globl	grid
	.type	grid, @object
	.size	grid, 200
	.balign	8
grid:
	.zero	200

	.section .debug_abbrev,"",@progbits
.Labbreviations:
	.uleb128 1, 0x11	// compile unit
	.byte	1
	.uleb128 0x13, 0x0b, 0x03, 0x08, 0, 0	// language, name
	.uleb128 2, 0x24	// base type
	.byte	0
	.uleb128 0x0b, 0x0b, 0x3e, 0x0b, 0x03, 0x08, 0, 0	// size, encoding, name
	.uleb128 3, 0x01	// array
	.byte	1
	.uleb128 0x49, 0x13, 0, 0	// type
	.uleb128 4, 0x21	// its first dimension
	.byte	0
	.uleb128 0x2f, 0x0b, 0, 0	// upper bound
	.uleb128 5, 0x21	// its second one
	.byte	0
	.uleb128 0x22, 0x0d, 0x2f, 0x0b, 0, 0	// lower and upper bound
	.uleb128 6, 0x34	// variable
	.byte	0
	.uleb128 0x03, 0x08, 0x49, 0x13, 0x3f, 0x19, 0x02, 0x18, 0, 0	// name, type, external, location
	.uleb128 0

	.section .debug_info,"",@progbits
.Lunit:
	.long	.Lend - .Lversion
.Lversion:
	.short	4
	.long	.Labbreviations
	.byte	8
	.uleb128 1
	.byte	0x0e	// Fortran 95
	.asciz	"fortran_names.f90"
.Linteger:
	.uleb128 2
	.byte	4, 5
	.asciz	"integer(kind=4)"
.Larray:
	.uleb128 3
	.long	.Linteger - .Lunit
	.uleb128 4
	.byte	10
	.uleb128 5
	.sleb128 -2
	.byte	2
	.byte	0
	.uleb128 6
	.asciz	"grid"
	.long	.Larray - .Lunit
	.uleb128 9
	.byte	3	// DW_OP_addr
	.quad	grid
	.byte	0
.Lend:
	.section .note.GNU-stack,"",@progbits
