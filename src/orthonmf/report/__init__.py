"""A fitted model as one page of HTML that opens without a network."""

from .page import render, write_report

__all__ = ["render", "write_report"]
