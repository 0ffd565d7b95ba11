"""Cells that the tests of the runner compute in other processes."""

import os
import time


def double(number):
    return {"double": 2 * number}


def sleep(seconds):
    time.sleep(seconds)
    return {"slept": seconds}


def fail(number):
    raise ValueError(f"{number} is not to be had")


def die(code):
    os._exit(code)
