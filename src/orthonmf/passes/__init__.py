"""Passes over the data as values.

A pass is a frozen object of a module of this package. It holds what it needs (centres, a temperature, prices), names the columns that it
reads, and turns one block of items into totals, which add, and columns, which join in the order of the items. It writes nothing else, so
that an engine may compute a block in another thread, process or place.
"""
