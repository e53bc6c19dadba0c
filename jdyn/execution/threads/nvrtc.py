"""CUDA C++ compiled to PTX by NVRTC, which JAX's wheels for CUDA bring along."""

import ctypes
import functools
import importlib.util
import pathlib
import re


class CompilationError(RuntimeError):
    """NVRTC refused a program that we wrote."""


@functools.lru_cache(maxsize=64)
def compiled(text: str, architecture: str) -> str:
    """PTX of a program.

    Args:
        text: CUDA C++.
        architecture: Such as `compute_90`.

    Raises:
        FileNotFoundError: if there is no NVRTC.
        CompilationError: with what NVRTC says.
    """
    library, program = _library(), ctypes.c_void_p()
    _checked(library, library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"lanes.cu", 0, None, None))
    try:
        # By default quotients are rounded correctly. x / x has to be 1: else forward dynamics in float32 lose up to six
        # digits where a light link carries a heavy one.
        options = [f"--gpu-architecture={architecture}".encode(), b"--std=c++17"]
        code = library.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
        if code:
            raise CompilationError(f"NVRTC: {_text(library, program, 'ProgramLog')[:2000]}")
        ptx = _text(library, program, "PTX")
    finally:
        _checked(library, library.nvrtcDestroyProgram(ctypes.byref(program)))
    return for_driver(ptx)


def for_driver(ptx: str) -> str:
    """NVRTC names its own version of PTX, which an older driver refuses."""

    def version(found):
        return ".version {}.{}".format(*min(newest_ptx(), (int(found[1]), int(found[2]))))

    return re.sub(r"^\.version (\d+)\.(\d+)", version, ptx, count=1, flags=re.MULTILINE)


def newest_ptx() -> tuple[int, int]:
    """The newest version of PTX that the driver reads; without a driver, that of the oldest one for CUDA 12."""
    number = ctypes.c_int()
    try:
        failed = ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(number))
    except OSError:
        failed = True
    major, minor = divmod(number.value // 10, 100)
    if failed or major < 12:
        return 8, 0
    # CUDA 12.5 and 12.6 read the same; since CUDA 13 both numbers go together.
    return (8, minor - (minor > 5)) if major == 12 else (major - 4, minor)


def _text(library, program, what) -> str:
    size = ctypes.c_size_t()
    _checked(library, getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
    text = ctypes.create_string_buffer(size.value)
    _checked(library, getattr(library, f"nvrtcGet{what}")(program, text))
    return text.value.decode()


def _checked(library, code):
    if code:
        library.nvrtcGetErrorString.restype = ctypes.c_char_p
        raise CompilationError(f"NVRTC: {library.nvrtcGetErrorString(code).decode()}")


@functools.cache
def _library() -> ctypes.CDLL:
    names = [str(path) for path in _in_wheels()] + ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"]
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise FileNotFoundError('NVRTC, which compiles for NVIDIA GPUs, was not found: pip install "jax[cuda13]"')


def _in_wheels():
    spec = importlib.util.find_spec("nvidia")
    for folder in spec.submodule_search_locations or () if spec else ():
        yield from sorted(pathlib.Path(folder).glob("*/lib/libnvrtc.so.*"), reverse=True)
