"""Programs taken out of the process that traced them: exported modules and saved executables."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export
from jax.experimental import serialize_executable

from tests.roster.support.processes import run_script

# Reductions of up to a hundred terms of order one, in single precision.
ROUNDING = 1e-5


def vector(count: int) -> np.ndarray:
    return np.linspace(0.1, 1.0, count).astype(np.float32)


def shaped(*shape: object) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, np.float32)


def energy(x: jax.Array) -> jax.Array:
    return jnp.sum(jnp.sin(x) ** 2)


def energy_in_numpy(x: np.ndarray) -> float:
    return float(np.sum(np.sin(x.astype(float)) ** 2))


def exported_energy(count: object = 5) -> export.Exported:
    return export.export(jax.jit(energy))(shaped(count))


def test_an_exported_program_computes_what_it_did() -> None:
    x = vector(5)
    assert float(exported_energy().call(x)) == pytest.approx(energy_in_numpy(x), rel=ROUNDING)


def test_an_exported_program_knows_its_signature() -> None:
    exported = exported_energy()
    assert exported.platforms == ("cpu",)
    assert [(a.shape, a.dtype) for a in exported.in_avals] == [((5,), np.float32)]
    assert [(a.shape, a.dtype) for a in exported.out_avals] == [((), np.float32)]


def test_the_saved_module_is_portable_stablehlo() -> None:
    """The bytes are parsed back into text: one sine on five numbers, and no custom call."""
    text = exported_energy().mlir_module()
    assert "func.func public @main(%arg0: tensor<5xf32>" in text
    assert text.count("stablehlo.sine") == 1
    assert "custom_call" not in text


def test_exporting_twice_gives_the_same_bytes() -> None:
    assert exported_energy().mlir_module_serialized == exported_energy().mlir_module_serialized


@pytest.mark.parametrize(
    ("argument", "reason"),
    [
        (np.ones(4, np.float32), "Shape mismatch"),
        (np.ones(5, np.int32), "Dtype mismatch"),
        (np.ones((5, 1), np.float32), "Rank mismatch"),
    ],
    ids=["shape", "dtype", "rank"],
)
def test_an_argument_of_another_type_is_refused(argument: np.ndarray, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        exported_energy().call(argument)


def test_an_exported_program_is_part_of_a_larger_one() -> None:
    exported = exported_energy()
    x = vector(5)
    value = jax.jit(lambda y: 2.0 * exported.call(y + 1.0))(x)
    assert float(value) == pytest.approx(2.0 * energy_in_numpy(x + 1.0), rel=ROUNDING)


def test_the_gradient_is_exported_along() -> None:
    """d/dx sin(x)^2 = sin(2 x), through the exported reverse program and through its caller."""
    exported, x = exported_energy(), vector(5)
    expected = np.sin(2.0 * x)
    np.testing.assert_allclose(jax.grad(exported.call)(x), expected, rtol=ROUNDING)
    (direct,) = exported.vjp().call(x, np.float32(1.0))
    np.testing.assert_allclose(direct, expected, rtol=ROUNDING)


def test_trees_keep_their_shape() -> None:
    def swap(tree: dict[str, jax.Array]) -> tuple[jax.Array, dict[str, jax.Array]]:
        return tree["a"] + 1.0, {"b": tree["b"] * 2.0}

    tree = {"a": vector(2), "b": vector(3)}
    exported = export.export(jax.jit(swap))(jax.tree.map(lambda leaf: shaped(*leaf.shape), tree))
    first, second = exported.call(tree)
    np.testing.assert_array_equal(first, tree["a"] + np.float32(1.0))
    np.testing.assert_array_equal(second["b"], tree["b"] * np.float32(2.0))


@pytest.mark.parametrize("count", [1, 2, 17, 100])
def test_a_symbolic_size_serves_every_size(count: int) -> None:
    exported = exported_energy(*export.symbolic_shape("n"))
    x = vector(count)
    assert float(exported.call(x)) == pytest.approx(energy_in_numpy(x), rel=ROUNDING)
    np.testing.assert_allclose(jax.grad(exported.call)(x), np.sin(2.0 * x), rtol=ROUNDING)


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (3, 2), (2, 6)])
def test_symbolic_sizes_are_computed_with(rows: int, columns: int) -> None:
    """A mean over n and a flattening to n * m need the sizes as numbers and as shapes."""

    def centred(x: jax.Array) -> jax.Array:
        return (x - x.sum(axis=0) / x.shape[0]).reshape(-1)

    exported = export.export(jax.jit(centred))(shaped(*export.symbolic_shape("n, m")))
    assert str(exported.out_avals[0].shape) in ("(m*n,)", "(n*m,)")
    x = np.random.default_rng(0).normal(size=(rows, columns)).astype(np.float32)
    expected = (x - x.mean(axis=0)).ravel()
    np.testing.assert_allclose(exported.call(x), expected, atol=ROUNDING)


def test_two_arguments_must_agree_on_a_symbolic_size() -> None:
    n, m = export.symbolic_shape("n, m")
    exported = export.export(jax.jit(lambda a, b: a @ b))(shaped(n, m), shaped(m))
    assert exported.call(np.ones((2, 3), np.float32), vector(3)).shape == (2,)
    with pytest.raises(ValueError, match="inconsistency between dimension size"):
        exported.call(np.ones((2, 3), np.float32), vector(4))


def test_a_constraint_on_a_symbolic_size_is_enforced() -> None:
    (size,) = export.symbolic_shape("k", constraints=["k >= 4"])
    exported = export.export(jax.jit(lambda x: x[:4]))(shaped(size))
    np.testing.assert_array_equal(exported.call(vector(6)), vector(6)[:4])
    with pytest.raises(ValueError, match="symbolic shape constraint"):
        exported.call(vector(3))


def test_a_shape_that_cannot_hold_for_every_size_is_refused() -> None:
    (size,) = export.symbolic_shape("n")
    with pytest.raises(Exception, match="divide evenly"):
        export.export(jax.jit(lambda x: x.reshape(2, -1)))(shaped(size))


def test_a_program_for_another_platform_is_made_here_but_not_run() -> None:
    exported = export.export(jax.jit(energy), platforms=["tpu"])(shaped(5))
    assert exported.platforms == ("tpu",)
    with pytest.raises(ValueError, match="exported for platforms"):
        exported.call(vector(5))


def test_a_program_for_several_platforms_runs_here() -> None:
    exported = export.export(jax.jit(energy), platforms=["cpu", "cuda"])(shaped(5))
    value = float(exported.call(vector(5)))
    assert value == pytest.approx(energy_in_numpy(vector(5)), rel=ROUNDING)


class Saved(NamedTuple):
    """A compiled program in a file, its argument, and what the process that saved it computed."""

    path: Path
    argument: np.ndarray
    report: dict[str, Any]

    def run(self, action: str) -> dict[str, Any]:
        numbers = map(repr, self.argument.tolist())
        return run_script(
            "export_probe", action, str(self.path), *numbers, scratch=self.path.parent
        )


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Saved:
    unsaved = Saved(tmp_path_factory.mktemp("saved") / "program", vector(3), {})
    return unsaved._replace(report=unsaved.run("save"))


def test_a_saved_program_runs_here(saved: Saved) -> None:
    payload, in_tree, out_tree = pickle.loads(saved.path.read_bytes())
    program = serialize_executable.deserialize_and_load(payload, in_tree, out_tree)
    value = float(program(saved.argument))
    assert value.hex() == saved.report["result"]
    assert value == pytest.approx(energy_in_numpy(saved.argument), rel=ROUNDING)


def test_a_fresh_process_runs_a_saved_program_without_compiling(saved: Saved) -> None:
    assert saved.report["compilations"] > 0
    loaded = saved.run("load")
    assert loaded["result"] == saved.report["result"]
    assert loaded["compilations"] == 0
    assert loaded["control"] > 0


def test_a_saved_program_refuses_another_shape(saved: Saved) -> None:
    program = serialize_executable.deserialize_and_load(*pickle.loads(saved.path.read_bytes()))
    with pytest.raises(TypeError, match="Argument types differ"):
        program(vector(4))
