"""The paper's tables and figures: data, runs, measurement, rendered table. ``orthonmf reproduce`` is the command.

A table is a list of cells. Each runs in a process of its own kind (`runner`), is measured by one function (`measure`), is kept in a file
(`store`) and ends up beside the number that the paper prints (`paper`, `render`).
"""
