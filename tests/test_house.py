"""The house rules, as tests."""

import ast
import functools
import graphlib
import inspect
import subprocess
import sys
import tomllib
from pathlib import Path

import grimp
import pytest

import spinney
from spinney import datasets, plot, study

PACKAGE = Path(spinney.__file__).parent
REPOSITORY = Path(__file__).parents[1]
KERNELS = PACKAGE / "kernels"
STRUCTS = KERNELS / "common" / "structs.py"  # every tuple in one file, a line per field
KERNEL_FILES = sorted(path for path in KERNELS.rglob("*.py") if path != STRUCTS)
SOURCE_FILES = sorted(PACKAGE.rglob("*.py"))
PUBLIC = [name for name in spinney.__all__ if name not in {"__version__", "datasets", "plot", "study"}]
MAX_LINES = 700


@functools.cache
def parse(source):
    """The syntax tree of a source; seven rules look at each file."""
    return ast.parse(source)


@pytest.fixture(scope="module", autouse=True)
def forget_trees():
    """Leave no trees of a whole package to the tests of other files."""
    yield
    parse.cache_clear()


# --- Kernels ------------------------------------------------------------------------------------------------


def offences(source):
    """What a kernel file must not contain, as "line: what"."""
    found = []
    for node in ast.walk(parse(source)):
        if isinstance(node, ast.FunctionDef):
            decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
            if len(decorators) != 1 or decorators[0] not in {"kernel", "inlined", "door"}:
                found.append((node.lineno, f"{node.name} is not decorated by kernel, inlined or door alone"))
        elif isinstance(node, ast.ClassDef | ast.Raise | ast.Try | ast.AsyncFunctionDef | ast.Lambda):
            found.append((node.lineno, type(node).__name__))
        elif isinstance(node, ast.keyword) and node.arg in {"parallel", "fastmath"}:
            found.append((node.value.lineno, node.arg))
        elif isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node) in {
            "np.random",
            "numpy.random",
            "prange",
        }:
            found.append((node.lineno, ast.unparse(node)))
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
            if any(name.split(".")[0] == "numba" for name in names):
                found.append((node.lineno, "numba"))
    return [f"{line}: {what}" for line, what in sorted(found)]


def by_file(check, paths):
    """What a check finds, by file; files in which it finds nothing are left out."""
    found = {path.relative_to(PACKAGE).as_posix(): check(path) for path in paths}
    return {name: what for name, what in found.items() if what}


def test_kernel_files_hold_kernels_only():
    assert by_file(lambda path: offences(path.read_text()), KERNEL_FILES) == {}


@pytest.mark.parametrize(
    "source",
    [
        "def f(x): return x",
        "@kernel\n@other\ndef f(x): return x",
        "@kernel(parallel=True)\ndef f(x): return x",
        "@kernel\ndef f(x):\n    raise ValueError",
        "@kernel\ndef f(x): return np.random.rand()",
        "@kernel\ndef f(x):\n    for i in prange(x): pass",
        "@kernel\ndef f(x):\n    try: return x\n    except ValueError: return 0",
        "import numba",
        "from numba.core import types",
        "class A: pass",
        "f = lambda x: x",
        "g = other(f, fastmath=True)",
    ],
)
def test_the_check_of_kernel_files_can_fail(source):
    assert offences(source)
    assert offences("@kernel\ndef f(x):\n    return x + 1") == []


# --- Docstrings ---------------------------------------------------------------------------------------------

FRAGMENTS = ("Of", "As of", "Itself")  # as first words: half of a sentence whose other half is the function's name


def list_fragments(source):
    """The lines of functions and classes whose docstring begins in the middle of a sentence."""
    found = []
    for node in ast.walk(parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            words = (ast.get_docstring(node) or "").replace(";", " ").replace(",", " ").replace(".", " ").split()
            if any(words[: len(part.split())] == part.split() for part in FRAGMENTS):
                found.append(getattr(node, "lineno", 1))
    return found


def test_docstrings_begin_with_whole_sentences():
    assert (
        by_file(lambda path: list_fragments(path.read_text()), [p for p in SOURCE_FILES if KERNELS not in p.parents])
        == {}
    )


@pytest.mark.parametrize("text", ["Of the rows.", "As of now, all.", "Itself; a number."])
def test_the_check_of_docstrings_can_fail(text):
    assert list_fragments(f'def f():\n    """{text}"""') == [1]
    assert list_fragments(f'class A:\n    """{text}"""') == [1]
    assert list_fragments(f'"""{text}"""') == [1]
    assert list_fragments('def f():\n    """Often as of old."""') == []


# --- Arguments of kernels -----------------------------------------------------------------------------------

MOST_ARGUMENTS = 8  # of a kernel: what belongs together goes through a call together, as a NamedTuple of `structs`
MORE_ARGUMENTS: dict[str, str] = {}  # "file:function": why it takes more


def long_signatures(source):
    """Functions that take more arguments than MOST_ARGUMENTS, as {name: number}."""
    functions = [node for node in ast.walk(parse(source)) if isinstance(node, ast.FunctionDef)]
    numbers = {f.name: len(f.args.posonlyargs) + len(f.args.args) + len(f.args.kwonlyargs) for f in functions}
    return {name: number for name, number in numbers.items() if number > MOST_ARGUMENTS}


def test_kernels_take_few_arguments():
    files = {path.relative_to(KERNELS).as_posix(): path for path in KERNEL_FILES}
    found = {f"{file}:{name}" for file, path in files.items() for name in long_signatures(path.read_text())}
    assert found == set(MORE_ARGUMENTS), "a kernel takes too many arguments, or an exception is no longer needed"


def test_the_check_of_arguments_can_fail():
    assert long_signatures("@door\ndef f(a, b, c, d, e, f, g, h, i): pass") == {"f": 9}
    assert long_signatures("@door\ndef f(a, b, /, c, d, *, e, f, g, h, i): pass") == {"f": 9}
    assert long_signatures("@door\ndef f(a, b, c, d, e, f, g, h): pass") == {}


# --- The layout of nodes ------------------------------------------------------------------------------------

LAYOUT = KERNELS / "common" / "node_layout.py"
MASKS = {  # the masks and shifts of `node_layout.py`, and other names that they have had
    *(
        target.id
        for node in ast.parse(LAYOUT.read_text()).body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and target.id != "MOST_FEATURES"
    ),
    *("CHILD_SHIFT", "CHILD_WORD", "FEATURE_WORD", "MISSING_BITS_WORD", "TEST_MASK", "TEST_LOW"),
}
PACKED = {"link", "links", "hot", "test", "tests"}  # what a variable that holds packed words is called


def unpackings(source):
    """Where a source takes tests or links apart by itself, as {what: line}."""
    found = {}
    for node in ast.walk(parse(source)):
        match node:
            case ast.Name(id=name) | ast.alias(name=name) | ast.Attribute(attr=name) if name in MASKS:
                found[name] = node.lineno
            case ast.BinOp(left=packed, op=ast.LShift() | ast.RShift() | ast.BitAnd(), right=width):
                numbers = {part.value for part in ast.walk(width) if isinstance(part, ast.Constant)}
                words = {part.id for part in ast.walk(packed) if isinstance(part, ast.Name)}
                words |= {part.attr for part in ast.walk(packed) if isinstance(part, ast.Attribute)}
                if words & PACKED and numbers & {2, 3, 4, 32, 2**32 - 1}:
                    found[ast.unparse(node)] = node.lineno
    return found


def test_only_the_layout_knows_how_tests_and_links_are_packed():
    others = [path for path in SOURCE_FILES if path != LAYOUT]
    assert by_file(lambda path: unpackings(path.read_text()), others) == {}


@pytest.mark.parametrize(
    "source",
    [
        "from spinney._types import KIND_BITS",
        "from .node_layout import TEST_WORD",
        "layout.FEATURE_SHIFT",
        "CHILD_SHIFT = np.uint64(32)",
        "link >> 32",
        "links[node, 1] >> np.uint64(32)",
        "forest.hot[:, 1] & 0xFFFFFFFF",
        "tree.test.astype(np.int64) >> 4",
        "test & 3",
    ],
)
def test_the_check_of_the_layout_can_fail(source):
    assert unpackings(source)
    assert unpackings("feature_of_link(link) + child_of_link(links[node, 1]) + (word >> 32) + (key & 3)") == {}


# --- Arithmetic ---------------------------------------------------------------------------------------------

# What models and answers are made by: `common/elementary.py` and `_elementary` instead, the same bits on every CPU.
FIXED_ARITHMETIC = ("kernels", "table", "tree", "ensemble", "model", "estimators")
INEXACT = {
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "logaddexp", "logaddexp2"),
    *("power", "float_power", "pow", "cbrt", "hypot", "dist", "gamma", "lgamma", "erf", "erfc"),
    *(f"{a}{name}{h}" for a in ("", "a", "arc") for name in ("sin", "cos", "tan") for h in ("", "h", "2")),
}
EXEMPT = {  # file: (what it may use, why)
    "model/ensemble_theory.py": (
        {"math.log", "math.log1p", "math.exp", "**"},
        "theory of votes: figures to read, no model",
    ),
    "tree/pessimistic.py": ({"statistics"}, "a quantile; it takes a logarithm for confidences below 0.075 only"),
    "estimators/base_boosting.py": ({"math.log2"}, "seconds that a fit will take"),
}
ARITHMETIC_FILES = [path for name in FIXED_ARITHMETIC for path in sorted((PACKAGE / name).rglob("*.py"))]


def is_exact_power(base, exponent):
    """Whether a power is one of whole numbers or of decimals, a constant, or a square."""
    is_constant = not any(isinstance(node, ast.Name | ast.Call) for side in (base, exponent) for node in ast.walk(side))
    is_whole = isinstance(base, ast.Constant) and isinstance(base.value, int)
    is_square = isinstance(exponent, ast.Constant) and exponent.value == 2 and isinstance(exponent.value, int)
    is_square &= not ast.unparse(base).startswith("float(")  # Python leaves squares of floats to the C library
    return is_constant or is_whole or is_square or ast.unparse(base).startswith("Decimal(")


def inexact_imports(node):
    """What an import brings that has last bits of its own."""
    names = [alias.name for alias in node.names]
    if isinstance(node, ast.Import):
        renamed = [f"{alias.name} as" for alias in node.names if alias.name == "math" and alias.asname]
        return renamed + [name for name in names if name.startswith(("scipy.special", "statistics"))]
    home = node.module or ""
    if home == "statistics" or home.startswith("scipy.special"):
        return [home]
    barred = {"special"} if home == "scipy" else INEXACT if home in {"math", "cmath", "numpy"} else set()
    return [f"{home}.{name}" for name in names if name in barred]


def inexact(source):
    """Functions in a source that a CPU or a C library has its own last bits of, as {what: line}."""
    found = {}
    for node in ast.walk(parse(source)):
        match node:
            case ast.Attribute(value=ast.Name(id="np" | "numpy" | "math" | "cmath"), attr=name) if name in INEXACT:
                found[ast.unparse(node)] = node.lineno
            case ast.Import() | ast.ImportFrom():
                found |= dict.fromkeys(inexact_imports(node), node.lineno)
            case ast.BinOp(left=base, op=ast.Pow(), right=exponent) if not is_exact_power(base, exponent):
                found["**"] = node.lineno
            case ast.AugAssign(op=ast.Pow()) | ast.Call(func=ast.Name(id="pow")):
                found["pow"] = node.lineno
    return found


def test_models_and_answers_are_made_by_fixed_arithmetic():
    found = by_file(lambda path: inexact(path.read_text()), ARITHMETIC_FILES)
    for name, (may_use, _) in EXEMPT.items():
        assert may_use <= set(found.setdefault(name, {})), f"{name}: an exemption that is no longer needed"
        found[name] = {what: line for what, line in found[name].items() if what not in may_use}
    assert {name: what for name, what in found.items() if what} == {}


@pytest.mark.parametrize(
    "source",
    [
        "np.log2(x)",
        "f = np.exp",
        "numpy.power(x, 2)",
        "math.log(x)",
        "math.atan2(x, y)",
        "np.arctanh(x)",
        "np.tanh(x)",
        "x ** 0.5",
        "x ** 3",
        "x ** y",
        "2.0 ** y",
        "float(x) ** 2",
        "x **= 2",
        "pow(x, 0.5)",
        "from math import exp",
        "import math as m",
        "from scipy.special import expit",
        "import scipy.special",
        "from scipy import special",
        "from statistics import NormalDist",
    ],
)
def test_the_check_of_arithmetic_can_fail(source):
    assert inexact(source)
    exact = "np.sqrt(x) + x**2 + 2.0**-44 + math.ldexp(x, n) + np.ldexp(x, n) + 10 ** n + math.frexp(x)[1] + log2(x)"
    assert inexact(exact) == {}


# --- Files and names ----------------------------------------------------------------------------------------


def faults_of_file(path):
    """What is wrong with the length, the head or the name of a source file."""
    source = path.read_text()
    found = [] if len(source.splitlines()) <= MAX_LINES or path == STRUCTS else [f"more than {MAX_LINES} lines"]
    found += [] if ast.get_docstring(parse(source)) else ["does not say what it holds"]
    barred = {"utils", "util", "helper", "helpers", "manager", "handler", "common"}
    return found + [f"a name that says nothing: {word}" for word in sorted(barred & set(path.stem.split("_")))]


def test_source_files_are_short_documented_and_plainly_named():
    assert by_file(faults_of_file, SOURCE_FILES) == {}


def test_the_check_of_files_can_fail(tmp_path):
    path = tmp_path / "tree_utils.py"
    path.write_text("x = 1\n" * (MAX_LINES + 1))
    assert len(faults_of_file(path)) == 3


SHARED_NAMES = {  # folder: (names that several of its modules define, why)
    "kernels/predict": ({"descend", "step"}, "one row and rows side by side take the same steps, in other registers"),
    "kernels/textbook": (
        {"gain_of", "scan_cuts", "scan_feature", "scan_levels"},
        "the driver calls the scan of classes or that of values by the same names",
    ),
}


def shared_names(sources):
    """Functions and classes that more than one of these modules defines, as {name: modules}; sources by module."""
    homes = {}
    for module, source in sources.items():
        for node in parse(source).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                homes.setdefault(node.name, set()).add(module)
    return {name: sorted(modules) for name, modules in homes.items() if len(modules) > 1}


@pytest.mark.parametrize("folder", sorted({path.parent for path in SOURCE_FILES}), ids=lambda path: path.name)
def test_a_name_has_one_home_in_its_folder(folder):
    known, _ = SHARED_NAMES.get(folder.relative_to(PACKAGE).as_posix(), (set(), ""))
    found = shared_names({path.stem: path.read_text() for path in folder.glob("*.py")})
    assert {name: modules for name, modules in found.items() if name not in known} == {}, "say which of them it is"


def test_the_check_of_names_can_fail():
    sources = {"a": "def say(): pass\nclass Rows: pass", "b": "class Rows:\n    def say(self): pass", "c": "say = 1"}
    assert shared_names(sources) == {"Rows": ["a", "b"]}


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_are_documented_with_an_example(name):
    text = inspect.getdoc(getattr(spinney, name)) or ""
    assert ">>>" in text


@pytest.mark.parametrize("name", plot.__all__)
def test_pictures_are_documented_with_an_example(name):
    assert ">>>" in inspect.getdoc(getattr(plot, name))


@pytest.mark.parametrize(
    ("module", "name"), [(module, name) for module in (datasets, study) for name in module.__all__]
)
def test_names_of_modules_are_documented(module, name):
    assert inspect.getdoc(getattr(module, name))


def test_public_names_are_in_the_reference():
    lines = (REPOSITORY / "docs" / "reference.md").read_text().splitlines()
    listed = {line.split("`")[1].removeprefix("spinney.") for line in lines if line.startswith("| `spinney.")}
    expected = {*PUBLIC, "__version__"}
    expected |= {
        f"{module.__name__.removeprefix('spinney.')}.{name}"
        for module in (datasets, plot, study)
        for name in module.__all__
    }
    assert listed == expected


def test_all_and_dir_and_the_lazy_names_agree():
    assert set(spinney.__all__) == {*spinney._HOMES, "__version__"}
    assert set(spinney.__all__) <= set(dir(spinney))
    with pytest.raises(AttributeError, match="no attribute 'CART'; public names: AdaBoostClassifier"):
        _ = spinney.CART


def test_the_version_stands_in_one_place():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    assert "version" in project["project"]["dynamic"]
    assert project["tool"]["hatch"]["version"]["path"] == "src/spinney/__init__.py"


# --- Imports ------------------------------------------------------------------------------------------------


def find_cycle(imports):
    """Modules that import each other, the first of them again at the end; none if there are none.

    `imports` is {module: modules that it imports, inside its functions too}.
    """
    try:
        graphlib.TopologicalSorter(imports).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return []


def test_no_modules_import_each_other():
    graph = grimp.build_graph("spinney", exclude_type_checking_imports=True, cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert imports["spinney.cli.models"] >= {"spinney.cli.output"}
    assert find_cycle(imports) == []


def test_the_check_of_imports_can_fail(tmp_path, monkeypatch):
    assert sorted(set(find_cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}}))) == ["b", "c"]
    assert find_cycle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []
    package = tmp_path / "rooms_of_a_test"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "first.py").write_text("from rooms_of_a_test import second")
    (package / "second.py").write_text("def late():\n    from rooms_of_a_test import first")
    monkeypatch.syspath_prepend(tmp_path)
    graph = grimp.build_graph("rooms_of_a_test", exclude_type_checking_imports=True, cache_dir=None)
    assert find_cycle({module: graph.find_modules_directly_imported_by(module) for module in graph.modules})


# --- Start-up -----------------------------------------------------------------------------------------------


def test_import_spinney_imports_the_standard_library_only():
    code = "import sys; before = set(sys.modules); import spinney; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in done.stdout.split()}
    assert "spinney" in loaded
    assert loaded - {"spinney"} <= set(sys.stdlib_module_names)


def test_help_imports_neither_numpy_nor_scikit_learn():
    code = (
        "import sys\nfrom spinney.cli import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "print({'numpy', 'numba', 'sklearn', 'pyarrow', 'rich'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "set()"
