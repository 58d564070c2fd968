"""Known answers: made without machine code, of every kernel that draws, and of nothing less."""

import json
import os
import subprocess
import sys
from importlib import import_module
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from numba.core.registry import CPUDispatcher

import discreet
from discreet.compiled import kernels
from discreet.mechanisms.self_test import DRAWING, NOISE, answers_of, drawing
from discreet.noise import NOISE_ANSWERS, WrongAnswer, check_answers
from discreet.noise.draw import _prepared

PACKAGE = Path(discreet.__file__).parent
TESTS = Path(__file__).parents[1]
DRAWING_MODULES = (*NOISE, *chain.from_iterable(DRAWING.values()))

#: Kernels that are not on the path of what is drawn, by module or package, and why.
NEVER_DRAW = {
    "discreet.simulate": "makes simulated censuses only",
    "discreet.products": "adds up what was released, or estimates from it",
    **{
        f"discreet.mechanisms.topdown.{name}": "estimates from noisy answers, and sees nothing else"
        for name in (
            "dual_newton",
            "flow",
            "gradient",
            "least_squares",
            "partitions",
            "projection",
            "root",
            "rounding",
            "solve",
            "totals",
            "tree",
        )
    },
}

ANSWERS = [*NOISE_ANSWERS, *chain.from_iterable(answers_of(own) for own in DRAWING)]

LOAD_ALL = """
import json, sys
from itertools import chain
from discreet.mechanisms.self_test import DRAWING, NOISE, answers_of, drawing
from discreet.noise import NOISE_ANSWERS, check_answers
from discreet.noise.self_test import digest_of
answers = [*NOISE_ANSWERS, *chain.from_iterable(answers_of(own) for own in DRAWING)]
modules = (*NOISE, *chain.from_iterable(DRAWING.values()))
def name(kernel):
    return f"{kernel.py_func.__module__}.{kernel.py_func.__name__}"
def found():
    return {f"{name(k)} {s}" for k in drawing(modules) for s in k.signatures}
"""


def fresh(code: str, *arguments: str, **environment: str) -> object:
    """Return what code prints as JSON in a process in which nothing was drawn yet."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", LOAD_ALL + code, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def name_of(kernel) -> str:
    return f"{kernel.py_func.__module__}.{kernel.py_func.__name__}"


def all_kernels() -> list:
    """Return every kernel of the package, whether or not anybody has loaded its module."""
    for file in sorted(PACKAGE.rglob("*.py")):
        if "\n@compiled" in file.read_text():
            inside = file.relative_to(PACKAGE).with_suffix("")
            import_module(".".join(("discreet", *inside.parts)).removesuffix(".__init__"))
    return [kernel for kernel in kernels() if kernel.py_func.__module__.startswith("discreet.")]


def is_in(kernel, module: str) -> bool:
    return f"{kernel.py_func.__module__}.".startswith(f"{module}.")


def test_every_kernel_draws_or_is_known_not_to() -> None:
    draws = {name_of(kernel) for kernel in drawing(DRAWING_MODULES)}
    for kernel in all_kernels():
        reasons = [why for module, why in NEVER_DRAW.items() if is_in(kernel, module)]
        assert (name_of(kernel) in draws) != bool(reasons), name_of(kernel)


def test_what_never_draws_has_no_source_of_randomness() -> None:
    for kernel in all_kernels():
        if any(is_in(kernel, module) for module in NEVER_DRAW):
            home = sys.modules[kernel.py_func.__module__]
            assert "discreet.noise" not in Path(home.__file__).read_text(), name_of(kernel)


def test_the_answers_are_those_of_the_sources_without_machine_code() -> None:
    code = """
import numpy as np
from discreet.mechanisms.topdown import measurement
def narrowed(table, out):  # NumPy refuses numbers that do not fit, machine code cuts them
    out[:] = table.astype(np.int32)
    return bool((out == table).all())
measurement.narrowed = narrowed
print(json.dumps({answer.name: digest_of(answer.draw()) for answer in answers}))
"""
    assert fresh(code, NUMBA_DISABLE_JIT="1") == {answer.name: answer.digest for answer in ANSWERS}


def test_every_kernel_that_draws_is_run_by_the_self_test() -> None:
    """Called from Python, or compiled into a kernel that is."""
    code = """
check_answers(answers)
print(json.dumps([name(kernel) for kernel in drawing(modules) if kernel.signatures]))
"""
    run = set(fresh(code))
    by_name = {name_of(kernel): kernel for kernel in all_kernels()}
    waiting = [by_name[name] for name in run]
    while waiting:
        function = waiting.pop().py_func
        for name in function.__code__.co_names:
            inside = function.__globals__.get(name)
            if isinstance(inside, CPUDispatcher) and name_of(inside) not in run:
                run.add(name_of(inside))
                waiting.append(inside)
    assert sorted({name_of(kernel) for kernel in drawing(DRAWING_MODULES)} - run) == []


@pytest.mark.slow
def test_no_mechanism_draws_with_code_that_was_not_tested(tmp_path: Path) -> None:
    """Code is compiled once for each combination of types, and kept in a file of its own."""
    code = """
from pathlib import Path
from discreet.engine import Engine
from discreet.mechanisms import MECHANISMS
from discreet.noise import system
sys.path.insert(0, sys.argv[1])
from mechanisms.test_conformance import CASES
check_answers(answers)
tested, drawn = found(), []
for number, case in enumerate(CASES.values()):
    census = case.census(Engine(threads=1))
    case.mechanism(census).draw(census, system(), Path(sys.argv[2]) / str(number))
    drawn.append(case.name)
assert {*drawn} == {*MECHANISMS}, drawn
print(json.dumps(sorted(found() - tested)))
"""
    assert fresh(code, str(TESTS), str(tmp_path)) == []


# -- planted ------------------------------------------------------------------------------------


def everywhere(monkeypatch: pytest.MonkeyPatch, kernel, other) -> None:
    """Put a function in the place of a kernel wherever Python calls it."""
    for module in [m for n, m in sys.modules.items() if n.startswith("discreet.")]:
        for name, value in list(vars(module).items()):
            if value is kernel:
                monkeypatch.setattr(module, name, other)
    _prepared.cache_clear()


def called_by_python(monkeypatch: pytest.MonkeyPatch) -> list:
    """Return the kernels that the known answers call from Python."""
    called = []
    for kernel in drawing(DRAWING_MODULES):

        def noted(*arguments, kernel=kernel):
            called.append(kernel)
            return kernel(*arguments)

        with monkeypatch.context() as patched:
            everywhere(patched, kernel, noted)
            check_answers(ANSWERS)
    return [kernel for kernel in drawing(DRAWING_MODULES) if any(kernel is one for one in called)]


def off_by_one(value):
    """Return a result that differs in one place."""
    if isinstance(value, np.ndarray):
        if value.size:
            value.flat[-1] = not value.flat[-1] if value.dtype == bool else value.flat[-1] ^ 1
        return value
    if isinstance(value, tuple):
        first = off_by_one(value[0])
        return (
            value._replace(**{value._fields[0]: first})
            if hasattr(value, "_fields")
            else (
                first,
                *value[1:],
            )
        )
    return not value if isinstance(value, bool) else value + 1


def arrays_of(value) -> list[np.ndarray]:
    if isinstance(value, np.ndarray):
        return [value]
    return [array for part in value for array in arrays_of(part)] if type(value) is tuple else []


def erring(kernel):
    """Return a kernel that errs in one place of what it returns, or of what it writes."""

    def errs(*arguments):
        before = [array.copy() for array in arrays_of(arguments)]
        found = kernel(*arguments)
        if found is not None:
            return off_by_one(found)
        for old, new in zip(before, arrays_of(arguments), strict=True):
            changed = np.flatnonzero(old != new)
            if changed.size:
                new.flat[changed[-1]] += 1
                break
        return None

    return errs


def test_a_kernel_that_errs_in_one_place_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    missed, found = [], []
    for kernel in called_by_python(monkeypatch):
        with monkeypatch.context() as patched:
            everywhere(patched, kernel, erring(kernel))
            try:
                check_answers(ANSWERS)
            except WrongAnswer:
                found.append(name_of(kernel))
            else:
                missed.append(name_of(kernel))
    assert len(found) > 25
    assert not missed, " ".join(missed)
    _prepared.cache_clear()
    check_answers(ANSWERS)
