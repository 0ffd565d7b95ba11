"""Kernels of Triton, which read a tile of items once and write nothing of items times centres; ``engines.triton`` calls them.

Items are seen in their frame, x' = f (x − a · ref), formed in registers, so that nothing cancels; s = f a is their coordinate along the
reference. With centres b beside the reference and c along it, of an item and a centre

    inner = x'·b − s (b·(ref − ref32)),     d = ‖x'‖² + e,
    e = ‖b‖² − 2 inner  for means,          e = s² ‖b‖² − inner (2 s c + inner)  for lines.

Products are of numbers split in parts that the matrix units multiply exactly: h + m + l of 8 bits each (bf16), of which six products are
as good as float32 and four nearly so, or two of 11 bits (TF32) in three products. A matrix unit rounds its running sum towards zero, so
that each tile's sum begins at zero and is added to what was before by the ordinary units.

The grid is fixed by the shape of X alone. Every program sums over its tiles in registers and writes one partial sum; these are added in
float64 in their order: the same bits every time. Where the sums of all centres do not fit, one kernel finds Z or the label of every
item, and in a second each program has a tile of centres and of dimensions.
"""
