"""The twelve kernels, mended: a wrong file puts one of its own over them."""
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "solution"))
from faults import *
