"""Data types: promotion, weak types, double precision and what casts do to numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

# Joins on JAX's promotion lattice, from the documentation's table of binary promotion. Between
# two NumPy types of one kind the wider one wins; a float of any width beats every integer.
PROMOTIONS = [
    ("bool", "uint8", "uint8"),
    ("bool", "float32", "float32"),
    ("int8", "uint8", "int16"),
    ("int16", "uint16", "int32"),
    ("int32", "uint32", "int64"),
    ("int8", "int64", "int64"),
    ("uint64", "uint8", "uint64"),
    ("int64", "float16", "float16"),
    ("int32", "bfloat16", "bfloat16"),
    ("float16", "bfloat16", "float32"),
    ("float16", "float32", "float32"),
    ("float32", "float64", "float64"),
    ("float64", "complex64", "complex128"),
    ("int64", "complex64", "complex64"),
]

# NumPy's answer differs in these: it keeps the values of wide integers, JAX keeps the float.
FLOAT_WINS = [("int32", "float32"), ("int64", "float32"), ("int16", "float16"), ("int8", "float16")]


def promoted(first: str, second: str) -> str:
    total = jnp.ones(2, dtype=first) + jnp.ones(2, dtype=second)
    assert jnp.promote_types(first, second) == total.dtype
    return str(total.dtype)


@pytest.mark.parametrize(("first", "second", "expected"), PROMOTIONS)
def test_promotion_follows_the_documented_lattice(first: str, second: str, expected: str) -> None:
    with jax.enable_x64(True):
        assert promoted(first, second) == expected
        assert promoted(second, first) == expected


@pytest.mark.parametrize(("integer", "floating"), FLOAT_WINS)
def test_a_float_array_keeps_its_width_next_to_integers(integer: str, floating: str) -> None:
    with jax.enable_x64(True):
        assert promoted(integer, floating) == floating


@pytest.mark.parametrize("kind", ["int", "uint", "float"])
def test_promotion_within_a_kind_is_numpys(kind: str) -> None:
    widths = ["16", "32", "64"] if kind == "float" else ["8", "16", "32", "64"]
    names = [kind + width for width in widths]
    with jax.enable_x64(True):
        table = [[str(jnp.promote_types(a, b)) for a in names] for b in names]
    assert table == [[str(np.promote_types(a, b)) for a in names] for b in names]


@pytest.mark.parametrize(
    ("dtype", "scalar", "expected"),
    [
        ("float16", 1.5, "float16"),
        ("bfloat16", 2, "bfloat16"),
        ("float32", 1e-3, "float32"),
        ("int8", 3, "int8"),
        ("uint8", True, "uint8"),
        ("complex64", 2.0, "complex64"),
        ("float32", 1j, "complex64"),
    ],
)
def test_a_python_scalar_does_not_widen_an_array(dtype: str, scalar: Any, expected: str) -> None:
    with jax.enable_x64(True):
        assert str((jnp.ones(2, dtype=dtype) * scalar).dtype) == expected


def test_a_python_float_turns_integers_into_the_default_float() -> None:
    with jax.enable_x64(True):
        assert (jnp.ones(2, dtype="int8") * 1.5).dtype == np.float64
    with jax.enable_x64(False):
        assert (jnp.ones(2, dtype="int8") * 1.5).dtype == np.float32


def test_weak_types_come_from_python_scalars_and_end_with_arrays() -> None:
    weak = jnp.asarray(2.0)
    assert weak.weak_type
    assert (weak + 1.0).weak_type
    assert not (weak * jnp.ones(1, dtype="float16")).weak_type
    assert (weak * jnp.ones(1, dtype="float16")).dtype == np.float16
    assert not jnp.asarray(2.0, dtype="float32").weak_type
    assert not jnp.asarray(np.float32(2.0)).weak_type


def test_weak_types_survive_jit() -> None:
    assert jax.jit(lambda x: x)(2.0).weak_type
    product = jax.jit(lambda x, y: x * y)(2.0, jnp.ones(1, dtype="bfloat16"))
    assert product.dtype == jnp.bfloat16


CREATORS: dict[str, tuple[Callable[[], jax.Array], str]] = {
    "zeros": (lambda: jnp.zeros(2), "float"),
    "arange": (lambda: jnp.arange(3), "int"),
    "linspace": (lambda: jnp.linspace(0, 1, 3), "float"),
    "mean-of-integers": (lambda: jnp.mean(jnp.arange(3)), "float"),
    "from-numpy-double": (lambda: jnp.asarray(np.ones(2)), "float"),
    "complex-literal": (lambda: jnp.asarray([1j]), "complex"),
    "normal": (lambda: jax.random.normal(jax.random.key(0)), "float"),
}


@pytest.mark.parametrize("double", [False, True], ids=["single", "double"])
@pytest.mark.parametrize("name", CREATORS)
def test_default_types_have_the_enabled_width(name: str, double: bool) -> None:
    create, kind = CREATORS[name]
    bits = (64 if double else 32) * (2 if kind == "complex" else 1)
    with jax.enable_x64(double):
        assert str(create().dtype) == f"{kind}{bits}"


def test_double_precision_ends_with_its_context() -> None:
    before = jnp.zeros(1).dtype
    with jax.enable_x64(True):
        inside = jnp.full(1, 1.0 + 2.0**-40)
        with jax.enable_x64(False):
            assert jnp.zeros(1).dtype == np.float32
        assert jnp.zeros(1).dtype == np.float64
    assert jnp.zeros(1).dtype == before
    assert float(inside[0]) == 1.0 + 2.0**-40


def test_jit_does_not_confuse_the_two_precisions() -> None:
    @jax.jit
    def third(x: jax.Array) -> jax.Array:
        return x / 3.0

    for double, expected in [(False, np.float32(1.0) / np.float32(3.0)), (True, 1.0 / 3.0)] * 2:
        with jax.enable_x64(double):
            value = third(np.ones(1))
        assert value.dtype == (np.float64 if double else np.float32)
        assert float(value[0]) == float(expected)


def test_an_explicit_double_is_truncated_with_a_warning_in_single_mode() -> None:
    with jax.enable_x64(False), pytest.warns(UserWarning, match="float64"):
        assert jnp.zeros(2, dtype="float64").dtype == np.float32


def test_strict_promotion_refuses_to_mix() -> None:
    with jax.numpy_dtype_promotion("strict"):
        assert (jnp.ones(2, dtype="float32") * 2.0).dtype == np.float32
        with pytest.raises(ValueError, match="dtype promotion"):
            jnp.ones(2, dtype="float32") + jnp.ones(2, dtype="int32")


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_epsilon_is_the_gap_above_one(name: str) -> None:
    """Half of it is rounded away (ties go to even), all of it is kept."""
    with jax.enable_x64(True):
        epsilon = float(jnp.finfo(name).eps)
        one = jnp.ones((), dtype=name)
        assert float(one + jnp.asarray(epsilon / 2.0, dtype=name)) == 1.0
        assert float(one + jnp.asarray(epsilon, dtype=name)) == 1.0 + epsilon
    bits = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}
    assert epsilon == 2.0 ** -bits[name]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1.0 + 2.0**-8, 1.0),
        (1.0 + 3.0 * 2.0**-8, 1.0 + 2.0**-6),
        (3.0e38, 226.0 * 2.0**120),
        (1e-45, 0.0),
    ],
    ids=["tie-to-even-down", "tie-to-even-up", "large", "underflow"],
)
def test_bfloat16_rounds_to_nearest_even(value: float, expected: float) -> None:
    """Eight significant bits: 3e38 is 225.7 * 2**120."""
    assert float(jnp.asarray(value, dtype="bfloat16")) == expected


@pytest.mark.parametrize(
    ("dtype", "start", "step", "expected"),
    [("uint8", 255, 1, 0), ("int8", 127, 1, -128), ("int32", -(2**31), -1, 2**31 - 1)],
)
def test_integers_wrap_around(dtype: str, start: int, step: int, expected: int) -> None:
    assert int(jnp.asarray(start, dtype=dtype) + jnp.asarray(step, dtype=dtype)) == expected


@pytest.mark.parametrize(("a", "b"), [(7, 2), (-7, 2), (7, -2), (-7, -2)])
def test_integer_division_rounds_like_python(a: int, b: int) -> None:
    first, second = jnp.asarray(a, dtype="int32"), jnp.asarray(b, dtype="int32")
    assert (int(first // second), int(first % second)) == divmod(a, b)
    assert (first / second).dtype == np.float32
    assert float(first / second) == a / b


def test_sums_of_small_types_are_kept_wide_enough() -> None:
    """As in NumPy: narrow integers are summed in the default integer, booleans are counted."""
    narrow = jnp.full(1000, 100, dtype="int8")
    assert int(jnp.sum(narrow)) == 100_000
    assert int(jnp.sum(jnp.ones(300, dtype=bool))) == 300
    assert jnp.sum(jnp.ones(3, dtype="bfloat16")).dtype == jnp.bfloat16


def test_gradients_have_the_type_of_the_argument() -> None:
    for dtype in ("float16", "bfloat16", "float32"):
        gradient = jax.grad(lambda x: jnp.sum(x.astype("float32") ** 2))(jnp.ones(2, dtype=dtype))
        assert gradient.dtype == jnp.dtype(dtype)
        assert gradient.tolist() == [2.0, 2.0]


def test_a_bit_pattern_survives_a_bitcast() -> None:
    patterns = jnp.asarray([0x3F800000, 0x7F800000, 0x00000001], dtype="uint32")
    floats = jax.lax.bitcast_convert_type(patterns, "float32")
    assert floats[:2].tolist() == [1.0, float("inf")]
    back = jax.lax.bitcast_convert_type(floats, "uint32")
    np.testing.assert_array_equal(back, patterns)
