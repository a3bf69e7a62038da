# SPDX-License-Identifier: Apache-2.0
"""Instruction set levels: detection from macros, defaults, contradictions."""

import pytest
from gen import isa
from gen.errors import ConfigureError

V1 = {"__SSE2__"}
V2 = V1 | {"__SSE4_2__", "__SSSE3__", "__POPCNT__"}
V3 = V2 | {"__AVX2__", "__FMA__", "__BMI2__", "__F16C__", "__LZCNT__", "__MOVBE__"}


def names(choice):
    return [level.name for level in choice.all]


def test_default_is_the_compilers_level_and_those_above_that_pay():
    choice = isa.choose("x86_64", V1, [], None, "auto")
    assert names(choice) == ["x86-64", "x86-64-v3", "x86-64-v4"]
    assert choice.core_flags == ()


def test_arm_default():
    assert names(isa.choose("aarch64", {"__ARM_NEON"}, [], None, "auto")) == [
        "armv8-a", "armv8.2-a"]


def test_other_architectures_have_one_level():
    assert names(isa.choose("riscv64", set(), [], None, "auto")) == ["generic"]


def test_flags_of_the_environment_are_the_baseline():
    choice = isa.choose("x86_64", V2, ["-O2", "-march=x86-64-v2"], None, "auto")
    assert names(choice) == ["x86-64-v2", "x86-64-v3", "x86-64-v4"]
    assert choice.core_flags == ()
    assert "CXXFLAGS" in choice.reason


def test_levels_at_or_below_the_baseline_are_dropped():
    choice = isa.choose("x86_64", V3, ["-march=haswell"], None, "x86-64-v2,x86-64-v3,x86-64-v4")
    assert names(choice) == ["x86-64-v3", "x86-64-v4"]


def test_chosen_baseline_gets_its_flag():
    choice = isa.choose("x86_64", V1, [], "x86-64-v2", "auto")
    assert choice.core_flags == ("-march=x86-64-v2",)
    assert choice.kernel_flags(choice.extra[0]) == ("-march=x86-64-v3",)


def test_generic_below_the_compilers_default_is_possible():
    choice = isa.choose("x86_64", V2, [], "generic", "auto")
    assert choice.core_flags == ("-march=x86-64",)


def test_same_baseline_twice_is_no_contradiction():
    assert isa.choose("x86_64", V2, ["-march=x86-64-v2"], "x86-64-v2", "none").core_flags == ()


def test_contradiction_is_an_error():
    with pytest.raises(ConfigureError, match="contradicts the compiler flags"):
        isa.choose("x86_64", V3, ["-march=haswell"], "x86-64-v2", "auto")


@pytest.mark.parametrize("baseline, extra", [("x86-64-v9", "auto"), (None, "avx2"),
                                             ("armv8-a", "auto"), (None, "x86-64-v3,sve")])
def test_unknown_levels_are_refused(baseline, extra):
    with pytest.raises(ConfigureError, match="is not an instruction set level of x86_64"):
        isa.choose("x86_64", V1, [], baseline, extra)


def test_levels_stand_in_order_and_once():
    choice = isa.choose("x86_64", V1, [], None, "x86-64-v4,x86-64-v3,x86-64-v4")
    assert names(choice) == ["x86-64", "x86-64-v3", "x86-64-v4"]


AVX2 = {"__SSE3__", "__SSE4_1__", "__AVX__", "__AVX2__"}


@pytest.mark.parametrize("words, message", [
    (["-mavx2"], "CXXFLAGS give AVX, AVX2 beyond x86-64-v2; say -march=x86-64-v3 where every CPU"),
    (["-march=native"], "CXXFLAGS give AVX, AVX2 beyond x86-64-v2; say -march=x86-64-v2, or "),
    ([], "the compiler's defaults give AVX, AVX2 beyond x86-64-v2; ")])
def test_a_baseline_between_two_levels_is_refused(words, message):
    with pytest.raises(ConfigureError) as caught:
        isa.choose("x86_64", V2 | AVX2, words, None, "auto")
    assert message in str(caught.value) and "--isa-baseline=LEVEL" in str(caught.value)


def test_a_compiler_that_knows_more_than_the_level_asked_for_gets_its_flag():
    choice = isa.choose("x86_64", V2 | AVX2, [], "x86-64-v2", "none")
    assert choice.core_flags == ("-march=x86-64-v2",)


def test_more_than_the_highest_level_is_refused_too():
    v4 = V3 | AVX2 | {"__BMI__"} | set(isa.X86[3].macros)
    assert isa.choose("x86_64", v4, ["-march=x86-64-v4"], None, "none").baseline.name.endswith("v4")
    with pytest.raises(ConfigureError, match="AVX512VNNI beyond x86-64-v4; say -march=x86-64-v4,"):
        isa.choose("x86_64", v4 | {"__AVX512VNNI__"}, ["-march=native"], None, "none")


def test_extensions_that_only_intrinsics_reach_do_no_harm():
    choice = isa.choose("x86_64", V3 | AVX2 | {"__AES__", "__RDRND__"}, ["-march=haswell"], None,
                        "none")
    assert choice.baseline.name == "x86-64-v3"


def test_arm_extensions_between_levels():
    with pytest.raises(ConfigureError, match="ATOMICS beyond armv8-a; say -march=armv8.2-a"):
        isa.choose("aarch64", {"__ARM_NEON", "__ARM_FEATURE_ATOMICS"}, ["-march=armv8.1-a"], None,
                   "auto")


def test_sve_does_without_the_dot_product():
    """An A64FX has SVE and half precision, but no dot product; a baseline of both is refused."""
    a64fx = {"__ARM_NEON", "__ARM_FEATURE_ATOMICS", "__ARM_FEATURE_QRDMX", "__ARM_FEATURE_SVE",
             "__ARM_FEATURE_FP16_VECTOR_ARITHMETIC"}
    choice = isa.choose("aarch64", a64fx, ["-mcpu=a64fx"], None, "none")
    assert choice.baseline.name == "sve"
    assert isa.detect("aarch64", a64fx - {"__ARM_FEATURE_FP16_VECTOR_ARITHMETIC"}).name == "armv8-a"
    with pytest.raises(ConfigureError, match="give DOTPROD beyond sve"):
        isa.choose("aarch64", a64fx | {"__ARM_FEATURE_DOTPROD"}, ["-mcpu=neoverse-v1"], None,
                   "none")
    assert not any("dotprod" in flag for flag in isa.ARM[2].flags)


def test_c_may_do_with_less_but_not_with_more():
    isa.refuse_disagreement("x86_64", V1, V3)
    with pytest.raises(ConfigureError, match="CXXFLAGS give x86-64, CFLAGS .*AVX2.* beyond it"):
        isa.refuse_disagreement("x86_64", V3, V1)


def test_blanks_in_the_list_of_levels():
    assert names(isa.choose("x86_64", V1, [], None, "x86-64-v2, x86-64-v3")) == [
        "x86-64", "x86-64-v2", "x86-64-v3"]


def test_native_is_no_level():
    with pytest.raises(ConfigureError, match="'native' is not .* at start-up; these are: x86-64,"):
        isa.choose("x86_64", V1, [], "native", "auto")


def test_core_names_the_same_levels():
    """The start-up code and the generator must agree on the directory names."""
    import os
    source = os.path.join(os.path.dirname(__file__), "..", "..", "framework", "base",
                          "cpu_features.cc")
    with open(source, encoding="utf-8") as stream:
        text = stream.read()
    for level in isa.X86 + isa.ARM + isa.OTHER:
        assert '"%s"' % level.name in text
