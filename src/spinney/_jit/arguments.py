"""Arguments of kernels: structs are passed as they are.

Numba takes a struct apart before each call, the driver's into up to six hundred words, and puts it together again
behind it. Most of what it wrote for LLVM to read was that; see docs/decisions/0061.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable


class _Struct(NamedTuple):
    """How a struct is passed: as one argument."""

    model: Any

    def get_argument_type(self) -> Any:
        return self.model.get_value_type()

    def as_argument(self, _builder: Any, value: Any) -> Any:
        return value

    def from_argument(self, _builder: Any, value: Any) -> Any:
        return value


class _Models(NamedTuple):
    """Numba's models of types as its packer of arguments looks them up, but for structs."""

    manager: Any
    struct: type

    def lookup(self, kind: Any) -> Any:
        model = self.manager.lookup(kind)
        return _Struct(model) if isinstance(kind, self.struct) else model


def packer_of_structs() -> Callable[[Any, Any], Any]:
    """What takes the place of `BaseContext.get_arg_packer`; AttributeError or ImportError if Numba has changed."""
    from numba.core import types
    from numba.core.datamodel.packer import ArgPacker

    struct: Any = types.BaseNamedTuple  # type: ignore[attr-defined]

    def get_arg_packer(self: Any, kinds: Any) -> Any:
        return ArgPacker(_Models(self.data_model_manager, struct), kinds)

    return get_arg_packer
